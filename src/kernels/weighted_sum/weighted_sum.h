// weighted_sum: out[i] = sum over j of weights[i][j] * x[i * used + j] [+ residual[i]].
//
// Bindings: x (f32, read), expert_weights (f32, read), out (f32, write), and for weighted_sum_add
// the residual (f32, read; out's shape, or out itself). The first product, then fused multiply-adds
// in the order of j, then the residual. Tolerance against float64: 1e-6 * sum of |terms| + 1e-30.
#ifndef ASSAY_KERNELS_WEIGHTED_SUM_WEIGHTED_SUM_H_
#define ASSAY_KERNELS_WEIGHTED_SUM_WEIGHTED_SUM_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct WeightedSumConstants {
  uint32_t cols = 0;
  uint32_t used = 0;
  uint32_t cols_per_group = 0;
  uint32_t add_residual = 0;
};

Launch LaunchWeightedSum(uint32_t tokens, uint32_t cols, uint32_t used, bool add_residual);

gpu::CpuWorkgroupFn PickWeightedSum(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_WEIGHTED_SUM_WEIGHTED_SUM_H_
