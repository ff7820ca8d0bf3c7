// The launches of the fused ops.
#include <algorithm>

#include "kernels/activations.h"
#include "kernels/down_by_expert_sum/down_by_expert_sum.h"
#include "kernels/fused/compose.h"
#include "kernels/gate_up/gate_up.h"
#include "kernels/head_norm_rope_append/head_norm_rope_append.h"
#include "kernels/matmul/tile.h"
#include "kernels/norm_route/norm_route.h"
#include "kernels/vulkan/grids.h"
#include "kernels/weight_types.h"

namespace assay::kernels {
namespace {

// Shared memory for the product of one row of x with any rows of a matrix.
uint64_t ProductScratch(DType type, uint32_t rows, uint32_t cols) {
  if (!IsQuantised(type)) return 0;
  // A workgroup's last rows may be too few for the panel.
  return std::max(QuantScratchBytes(rows, cols, 1), QuantScratchBytes(1, cols, 1));
}

Launch GateUpLaunch(KernelIndex first_f32, KernelIndex first_q8, DType type, GateUpConstants c,
                    uint32_t pairs, ActivationFormat out, Target target) {
  const bool q8 = out == ActivationFormat::kQ8;
  c.out_q8 = q8 ? 1 : 0;
  const KernelIndex kernel = WeightKernel(q8 ? first_q8 : first_f32, type);
  if (target == Target::kSpirv) {
    c.rows_per_group = kSpirvGateUpRowsPerGroup;
    return MakeLaunch(kernel, c, {CeilDiv(c.rows, c.rows_per_group), pairs, 1});
  }
  // Whole blocks of the output.
  const uint32_t rows = RowsPerGroup(c.rows, WeightRowBytes(type, c.cols));
  c.rows_per_group = CeilDiv(rows, kQ8Block) * kQ8Block;
  const uint64_t shared = 2 * SharedPiece(c.rows_per_group * sizeof(float)) +
                          SharedPiece(QuantizedRowBytes(c.rows_per_group)) +
                          ProductScratch(type, c.rows, c.cols);
  return MakeLaunch(kernel, c, {CeilDiv(c.rows, c.rows_per_group), pairs, 1},
                    static_cast<uint32_t>(shared));
}

}  // namespace

Launch LaunchGateUp(DType weight_type, uint32_t rows, uint32_t cols, uint32_t pairs,
                    ActivationFormat out, Target target) {
  const GateUpConstants c{.rows = rows, .cols = cols};
  return GateUpLaunch(KernelIndex::kGateUpF32, KernelIndex::kGateUpRoundedF32, weight_type, c,
                      pairs, out, target);
}

Launch LaunchGateUpByExpert(DType weight_type, uint32_t rows, uint32_t cols, uint32_t experts,
                            uint32_t pairs, uint32_t fan, ActivationFormat out, Target target) {
  const GateUpConstants c{.rows = rows, .cols = cols, .experts = experts, .fan = fan};
  return GateUpLaunch(KernelIndex::kGateUpByExpertF32, KernelIndex::kGateUpByExpertRoundedF32,
                      weight_type, c, pairs, out, target);
}

Launch LaunchDownByExpertSum(DType weight_type, uint32_t rows, uint32_t cols, uint32_t experts,
                             uint32_t tokens, uint32_t used, Target target) {
  DownByExpertSumConstants c{.rows = rows, .cols = cols, .experts = experts, .used = used};
  const KernelIndex kernel = WeightKernel(KernelIndex::kDownByExpertSumF32, weight_type);
  if (target == Target::kSpirv) {
    c.rows_per_group = kSpirvSummedRowsPerGroup;
    return MakeLaunch(kernel, c, {CeilDiv(rows, c.rows_per_group), tokens, 1});
  }
  c.rows_per_group = RowsPerGroup(rows, WeightRowBytes(weight_type, cols));
  const uint64_t shared = SharedPiece(uint64_t{used} * c.rows_per_group * sizeof(float)) +
                          ProductScratch(weight_type, rows, cols);
  return MakeLaunch(kernel, c, {CeilDiv(rows, c.rows_per_group), tokens, 1},
                    static_cast<uint32_t>(shared));
}

Launch LaunchNormRoute(uint32_t tokens, uint32_t cols, float eps, uint32_t experts, uint32_t used,
                       bool normalise, Target target) {
  const NormRouteConstants c{
      .cols = cols, .eps = eps, .experts = experts, .used = used, .normalise = normalise ? 1u : 0u};
  const uint64_t shared =
      SharedPiece(uint64_t{experts} * sizeof(float)) + CeilDiv(experts, 16) * 16 * sizeof(float);
  return MakeLaunch(KernelIndex::kNormRoute, c, {tokens, 1, 1},
                    target == Target::kSpirv ? 0 : static_cast<uint32_t>(shared));
}

Launch LaunchHeadNormRopeAppend(DType cache_type, uint32_t rows, uint32_t cols, uint32_t head_dim,
                                float eps, uint32_t first_position, float base, Target target) {
  const HeadNormRopeAppendConstants c{{.cols = cols,
                                       .head_dim = head_dim,
                                       .first_position = first_position,
                                       .eps = eps,
                                       .base = base,
                                       .has_norm = 1,
                                       .has_weight = 1,
                                       .has_rope = 1}};
  const KernelIndex kernel = cache_type == DType::kF16 ? KernelIndex::kHeadNormRopeAppendF16
                                                       : KernelIndex::kHeadNormRopeAppendF32;
  if (target == Target::kSpirv) {
    return MakeLaunch(kernel, c, {rows, CeilDiv(cols / head_dim, kSpirvHeadsPerGroup), 1});
  }
  const uint64_t shared =
      SharedPiece(uint64_t{cols} * sizeof(float)) + uint64_t{head_dim} * sizeof(float);
  return MakeLaunch(kernel, c, {rows, 1, 1}, static_cast<uint32_t>(shared));
}

}  // namespace assay::kernels
