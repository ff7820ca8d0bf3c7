// matmul: out[i][r] = dot(weights[r], x[i]) [+ residual[i][r]].
//
// Bindings: weights (read), x (read), out (write), and for matmul_add the residual (read; out's
// shape, or out itself). Weights F32, F16, BF16 take f32 rows; Q8_0 and Q4_0 take kQ8 rows.
//
// Order of the sum, the same for every row whatever stands beside it:
//   float weights: 32 lanes, lane l adds columns l, l + 32, ... by fused multiply-add; then lane l
//   + 16 is added
//     to lane l, and 16 lanes fold as in simd/vec-inl.h;
//   quantised weights: the 32 products of a block are added as integers, which is exact; then
//     chain[b % 4] += float(block b) * (weight scale * activation scale), block after block, each
//     step rounded; last (chain[0] + chain[2]) + (chain[1] + chain[3]).
// Tolerance against float64 on the same operands: |error| <= 1e-5 * sum of |products| + 1e-30.
#ifndef ASSAY_KERNELS_MATMUL_MATMUL_H_
#define ASSAY_KERNELS_MATMUL_MATMUL_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct MatMulConstants {
  uint32_t rows = 0;  // Of the weights: outputs of one token.
  uint32_t cols = 0;
  uint32_t tokens = 0;
  uint32_t rows_per_group = 0;
  uint32_t tokens_per_group = 0;
  uint32_t add_residual = 0;
};

Launch LaunchMatMul(DType weight_type, uint32_t rows, uint32_t cols, uint32_t tokens,
                    bool add_residual, Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickMatMulF32(Isa isa);
gpu::CpuWorkgroupFn PickMatMulF16(Isa isa);
gpu::CpuWorkgroupFn PickMatMulBF16(Isa isa);
gpu::CpuWorkgroupFn PickMatMulQ8_0(Isa isa);
gpu::CpuWorkgroupFn PickMatMulQ4_0(Isa isa);

// The oracle: `weights` and `x` as doubles. `magnitude` gets the sum of the products' absolute
// values.
void ReferenceMatMul(std::span<const double> weights, std::span<const double> x, uint32_t rows,
                     uint32_t cols, uint32_t tokens, std::span<double> out,
                     std::span<double> magnitude);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_MATMUL_MATMUL_H_
