#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/matmul_cooperative/matmul_cooperative.h"
#include "kernels/vulkan/grids.h"
#include "kernels/weight_types.h"

namespace assay::kernels {

Launch LaunchMatMulCooperative(DType weight_type, uint32_t rows, uint32_t cols, uint32_t tokens,
                               bool add_residual) {
  const bool few =
      uint64_t{CeilDiv(rows, kSpirvCooperativeTile)} * CeilDiv(tokens, kSpirvCooperativeTile) <
      kSpirvCooperativeFewTiles;
  const uint32_t tile = few ? kSpirvCooperativeSmallTile : kSpirvCooperativeTile;
  const MatMulConstants c{.rows = rows,
                          .cols = cols,
                          .tokens = tokens,
                          .rows_per_group = tile,
                          .tokens_per_group = tile,
                          .add_residual = add_residual ? 1u : 0u};
  KernelIndex first =
      few ? KernelIndex::kMatMulCooperativeSmallF32 : KernelIndex::kMatMulCooperativeF32;
  if (add_residual) {
    first =
        few ? KernelIndex::kMatMulCooperativeSmallAddF32 : KernelIndex::kMatMulCooperativeAddF32;
  }
  // All tokens of a tile's rows come one after another, so that the cache holds the rows.
  return MakeLaunch(WeightKernel(first, weight_type), c,
                    {CeilDiv(tokens, tile), CeilDiv(rows, tile), 1});
}

Launch LaunchMatMulByExpertCooperative(DType weight_type, uint32_t rows, uint32_t cols,
                                       uint32_t experts, uint32_t pairs, uint32_t fan) {
  const MatMulByExpertConstants c{.rows = rows,
                                  .cols = cols,
                                  .experts = experts,
                                  .pairs = pairs,
                                  .fan = fan,
                                  .rows_per_group = kSpirvCooperativeExpertRows,
                                  .by_expert = 1};
  // All rows of an expert come one after another, so that the cache holds its tokens.
  return MakeLaunch(WeightKernel(KernelIndex::kMatMulByExpertCooperativeF32, weight_type), c,
                    {CeilDiv(rows, c.rows_per_group), experts, 1});
}

}  // namespace assay::kernels
