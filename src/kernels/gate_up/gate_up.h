// gate_up: out = silu(gate * x) * (up * x), two matrix products over one input and silu_mul on
// their results; gate_up_by_expert: the same with the two matrices of each pair's expert.
//
// Bindings: gate (read), up (read), x (read), out (write; f32 or kQ8). By expert: gate (read,
// inexact), expert_ids (int32, read), up (read, inexact), x (read), out (write). The products stay
// in shared memory. The bits are those of matmul, or matmul_by_expert, and silu_mul; tolerance
// against float64: 1e-6 of the value, beside what the products' own tolerance makes of it; kQ8 adds
// half a step. A pair whose id is not below `experts` gives zeros. For few tokens: each reads the
// matrices anew.
#ifndef ASSAY_KERNELS_GATE_UP_GATE_UP_H_
#define ASSAY_KERNELS_GATE_UP_GATE_UP_H_

#include <cstdint>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct GateUpConstants {
  uint32_t rows = 0;  // Of each matrix.
  uint32_t cols = 0;
  uint32_t experts = 0;  // 0: one pair of matrices for all.
  uint32_t fan = 1;      // Pairs that share a row of x.
  uint32_t rows_per_group = 0;
  uint32_t out_q8 = 0;
};

// For `pairs` rows of out; 1 for each token without experts.
Launch LaunchGateUp(DType weight_type, uint32_t rows, uint32_t cols, uint32_t pairs,
                    ActivationFormat out, Target target = Target::kCpu);
Launch LaunchGateUpByExpert(DType weight_type, uint32_t rows, uint32_t cols, uint32_t experts,
                            uint32_t pairs, uint32_t fan, ActivationFormat out,
                            Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickGateUpF32(Isa isa);
gpu::CpuWorkgroupFn PickGateUpF16(Isa isa);
gpu::CpuWorkgroupFn PickGateUpBF16(Isa isa);
gpu::CpuWorkgroupFn PickGateUpQ8_0(Isa isa);
gpu::CpuWorkgroupFn PickGateUpQ4_0(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_GATE_UP_GATE_UP_H_
