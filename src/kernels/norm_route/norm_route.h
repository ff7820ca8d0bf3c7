// norm_route: rms_norm of each row, the product of the row with a small f32 matrix (the router's),
// and route on its result.
//
// Bindings: x (f32, read), weight (f32, read), router (f32, read), norm (f32, write: the normalised
// rows), expert_ids (int32, write), expert_weights (f32, write). The router's logits stay in shared
// memory. The bits are those of rms_norm, matmul and route; tolerance of a weight against float64:
// 4e-6 of it, beside what the logits' own tolerance makes of it.
#ifndef ASSAY_KERNELS_NORM_ROUTE_NORM_ROUTE_H_
#define ASSAY_KERNELS_NORM_ROUTE_NORM_ROUTE_H_

#include <cstdint>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct NormRouteConstants {
  uint32_t cols = 0;
  float eps = 0;
  uint32_t experts = 0;
  uint32_t used = 0;
  uint32_t normalise = 0;
};

Launch LaunchNormRoute(uint32_t tokens, uint32_t cols, float eps, uint32_t experts, uint32_t used,
                       bool normalise, Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickNormRoute(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_NORM_ROUTE_NORM_ROUTE_H_
