// matmul_by_expert: pair p takes matrix expert_ids[p] of a stack: out[p] = weights[expert_ids[p]] *
// x[p / fan].
//
// Bindings: weights (read, inexact: data picks the matrices), expert_ids (int32, read), x (read),
// out (write). A pair whose id is not below `experts` gives zeros. The sum's order and tolerance
// are those of matmul: the bits of a pair are the bits of matmul on that expert's matrix.
#ifndef ASSAY_KERNELS_MATMUL_BY_EXPERT_MATMUL_BY_EXPERT_H_
#define ASSAY_KERNELS_MATMUL_BY_EXPERT_MATMUL_BY_EXPERT_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct MatMulByExpertConstants {
  uint32_t rows = 0;  // Of one expert.
  uint32_t cols = 0;
  uint32_t experts = 0;
  uint32_t pairs = 0;
  uint32_t fan = 0;
  uint32_t rows_per_group = 0;
  uint32_t by_expert = 0;  // Workgroups over experts (1) or over pairs (0).
};

Launch LaunchMatMulByExpert(DType weight_type, uint32_t rows, uint32_t cols, uint32_t experts,
                            uint32_t pairs, uint32_t fan, Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickMatMulByExpertF32(Isa isa);
gpu::CpuWorkgroupFn PickMatMulByExpertF16(Isa isa);
gpu::CpuWorkgroupFn PickMatMulByExpertBF16(Isa isa);
gpu::CpuWorkgroupFn PickMatMulByExpertQ8_0(Isa isa);
gpu::CpuWorkgroupFn PickMatMulByExpertQ4_0(Isa isa);

void ReferenceMatMulByExpert(std::span<const double> weights, std::span<const int32_t> expert_ids,
                             std::span<const double> x, uint32_t rows, uint32_t cols,
                             uint32_t experts, uint32_t fan, std::span<double> out,
                             std::span<double> magnitude);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_MATMUL_BY_EXPERT_MATMUL_BY_EXPERT_H_
