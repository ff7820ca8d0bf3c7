// matmul_cooperative: the product of matmul.h for many tokens, by the matrix units of a GPU: on
// kSpirv alone, where the device takes gpu::kCooperativeMatrixPath. matmul_by_expert_cooperative:
// that of matmul_by_expert.h for many pairs of each expert.
//
// Bindings, constants and the form with a residual are those of matmul and matmul_by_expert; a pair
// whose id is not below `experts` gives zeros. Weights and activations are
// rounded to f16, and their products are added as f32 by the device, in an order of its own: the
// bits are the same in every run on one device and driver, but not those of matmul, and a token's
// may depend on the number of tokens beside it.
//
// Beyond f16: a token with a number over 65504 is scaled by a power of two until its largest is
// below 2^15, and its sums are scaled back; infinity and NaN go through as they are. Weights beyond
// 65504 count as that.
//
// Tolerance against float64 on the same operands, where no weight is beyond f16:
//   |error| <= 1.1e-3 * sum of |products| + 2^-24 * (sum of |x| + sum of |weights|) + 1e-30,
// with the last sum times the token's scale.
#ifndef ASSAY_KERNELS_MATMUL_COOPERATIVE_MATMUL_COOPERATIVE_H_
#define ASSAY_KERNELS_MATMUL_COOPERATIVE_MATMUL_COOPERATIVE_H_

#include <cstdint>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

// With fewer tokens most of a tile would be empty, and matmul is as fast.
inline constexpr uint32_t kCooperativeMinTokens = 16;

Launch LaunchMatMulCooperative(DType weight_type, uint32_t rows, uint32_t cols, uint32_t tokens,
                               bool add_residual);

// By expert: as many pairs for each, on average. With fewer most of a tile would be empty, and
// matmul_by_expert is as fast.
inline constexpr uint32_t kCooperativeMinPairsPerExpert = 8;

Launch LaunchMatMulByExpertCooperative(DType weight_type, uint32_t rows, uint32_t cols,
                                       uint32_t experts, uint32_t pairs, uint32_t fan);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_MATMUL_COOPERATIVE_MATMUL_COOPERATIVE_H_
