// route: softmax over each row of logits, then the `used` largest probabilities, larger first, the
// lower id first on a tie.
//
// Bindings: logits (f32, read), expert_ids (int32, write), expert_weights (f32, write). With
// normalise the chosen weights are divided by their sum, added in the order chosen. A row that
// holds a NaN gives NaN weights and the ids 0, 1, ...; a NaN is never larger than anything.
// Exponentials are added in 16 lanes, folded as in simd/vec-inl.h. Tolerance of a weight against
// float64: 4e-6 * weight + 1e-30.
#ifndef ASSAY_KERNELS_ROUTE_ROUTE_H_
#define ASSAY_KERNELS_ROUTE_ROUTE_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct RouteConstants {
  uint32_t experts = 0;
  uint32_t used = 0;
  uint32_t normalise = 0;
};

Launch LaunchRoute(uint32_t tokens, uint32_t experts, uint32_t used, bool normalise,
                   Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickRoute(Isa isa);

// One row.
void ReferenceRoute(std::span<const double> logits, bool normalise, std::span<int32_t> ids,
                    std::span<double> weights);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_ROUTE_ROUTE_H_
