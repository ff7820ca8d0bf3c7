#include <algorithm>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/tile.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/vulkan/grids.h"
#include "kernels/weight_types.h"

namespace assay::kernels {

Launch LaunchMatMul(DType weight_type, uint32_t rows, uint32_t cols, uint32_t tokens,
                    bool add_residual, Target target) {
  MatMulConstants c;
  c.rows = rows;
  c.cols = cols;
  c.tokens = tokens;
  c.add_residual = add_residual ? 1 : 0;
  KernelIndex first = add_residual ? KernelIndex::kMatMulAddF32 : KernelIndex::kMatMulF32;
  if (target == Target::kSpirv) {
    c.rows_per_group = SpirvRowsPerGroup(rows, tokens);
    c.tokens_per_group = SpirvTokensPerGroup(tokens);
    if (c.tokens_per_group > 1) {
      first = add_residual ? KernelIndex::kMatMulTileAddF32 : KernelIndex::kMatMulTileF32;
    }
    // All tokens of a few rows come one after another, so that the cache holds the rows.
    return MakeLaunch(WeightKernel(first, weight_type), c,
                      {CeilDiv(tokens, c.tokens_per_group), CeilDiv(rows, c.rows_per_group), 1});
  }
  c.rows_per_group = RowsPerGroup(rows, WeightRowBytes(weight_type, cols));
  c.tokens_per_group = std::min(tokens, kTileTokens);
  return MakeLaunch(
      WeightKernel(first, weight_type), c,
      {CeilDiv(rows, c.rows_per_group), CeilDiv(tokens, c.tokens_per_group), 1},
      IsQuantised(weight_type) ? QuantScratchBytes(rows, cols, c.tokens_per_group) : 0);
}

Launch LaunchMatMulByExpert(DType weight_type, uint32_t rows, uint32_t cols, uint32_t experts,
                            uint32_t pairs, uint32_t fan, Target target) {
  MatMulByExpertConstants c;
  c.rows = rows;
  c.cols = cols;
  c.experts = experts;
  c.pairs = pairs;
  c.fan = fan;
  const KernelIndex kernel = WeightKernel(KernelIndex::kMatMulByExpertF32, weight_type);
  if (target == Target::kSpirv) {
    // With fewer pairs a workgroup that shares its rows among those of an expert has too few.
    c.by_expert = pairs >= uint64_t{kSpirvPairsPerExpert} * experts ? 1 : 0;
    c.rows_per_group = c.by_expert != 0 ? kSpirvSharedRowsPerGroup : kSpirvExpertRowsPerGroup;
    return MakeLaunch(kernel, c,
                      {CeilDiv(rows, c.rows_per_group), c.by_expert != 0 ? experts : pairs, 1});
  }
  c.rows_per_group = RowsPerGroup(rows, WeightRowBytes(weight_type, cols));
  // With few pairs hardly two of them share an expert, and most experts' workgroups would be empty.
  c.by_expert = pairs >= std::max(experts / 2, 2u) ? 1 : 0;
  return MakeLaunch(
      kernel, c, {CeilDiv(rows, c.rows_per_group), c.by_expert != 0 ? experts : pairs, 1},
      IsQuantised(weight_type) ? QuantScratchBytes(rows, cols, c.by_expert != 0 ? pairs : 1) : 0);
}

}  // namespace assay::kernels
