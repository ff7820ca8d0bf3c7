// down_by_expert_sum: out[i] = sum over j of expert_weights[i][j] * (weights[expert_ids[i][j]] *
// x[i * used + j]) + residual[i]: matmul_by_expert and weighted_sum_add on its result.
//
// Bindings: weights (read, inexact: data picks the matrices), expert_ids (int32, read), x (read),
// expert_weights (f32, read), out (f32, write), residual (f32, read; out's shape, or out itself).
// The products stay in shared memory. The bits are those of the two ops; tolerance against float64:
// 1e-6 of the sum of the terms' magnitudes, beside the products' own. For few tokens: each reads
// the matrices anew.
#ifndef ASSAY_KERNELS_DOWN_BY_EXPERT_SUM_DOWN_BY_EXPERT_SUM_H_
#define ASSAY_KERNELS_DOWN_BY_EXPERT_SUM_DOWN_BY_EXPERT_SUM_H_

#include <cstdint>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct DownByExpertSumConstants {
  uint32_t rows = 0;  // Of one expert.
  uint32_t cols = 0;
  uint32_t experts = 0;
  uint32_t used = 0;
  uint32_t rows_per_group = 0;
};

Launch LaunchDownByExpertSum(DType weight_type, uint32_t rows, uint32_t cols, uint32_t experts,
                             uint32_t tokens, uint32_t used, Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickDownByExpertSumF32(Isa isa);
gpu::CpuWorkgroupFn PickDownByExpertSumF16(Isa isa);
gpu::CpuWorkgroupFn PickDownByExpertSumBF16(Isa isa);
gpu::CpuWorkgroupFn PickDownByExpertSumQ8_0(Isa isa);
gpu::CpuWorkgroupFn PickDownByExpertSumQ4_0(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_DOWN_BY_EXPERT_SUM_DOWN_BY_EXPERT_SUM_H_
