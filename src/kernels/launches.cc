// The launches of every op but the matrix products: grids from shapes alone.
#include <algorithm>

#include "kernels/activations.h"
#include "kernels/argmax/argmax.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/vulkan/grids.h"
#include "kernels/weight_types.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
namespace {

// Columns that one workgroup of an element-wise op takes: some microseconds of work, whole kQ8
// blocks.
constexpr uint32_t kCheapCols = 8192;
constexpr uint32_t kExpCols = 1024;

// The largest divisor of the query heads over one kv head that a workgroup may take.
uint32_t AttentionHeadsPerGroup(uint32_t heads, uint32_t kv_heads) {
  const uint32_t fan = heads / kv_heads;
  uint32_t best = 1;
  for (uint32_t n = 2; n <= std::min(fan, kAttentionMaxHeads); ++n) {
    if (fan % n == 0) best = n;
  }
  return best;
}

// A head a group of lanes on kSpirv; on kCpu a row a workgroup, with room for one position's sines
// and cosines.
Launch HeadLaunch(KernelIndex kernel, const HeadNormRopeConstants& c, uint32_t rows,
                  Target target) {
  if (target == Target::kSpirv) {
    return MakeLaunch(kernel, c, {rows, CeilDiv(c.cols / c.head_dim, kSpirvHeadsPerGroup), 1});
  }
  return MakeLaunch(kernel, c, {rows, 1, 1},
                    c.has_rope != 0 ? c.head_dim * uint32_t{sizeof(float)} : 0);
}

// Workgroups that take the queries over one kv head of all tokens.
uint64_t SpirvAttentionBlocks(uint32_t tokens, uint32_t fan, uint32_t queries) {
  return (uint64_t{tokens} * fan + queries - 1) / queries;
}

}  // namespace

Launch LaunchEmbedding(DType table_type, uint32_t table_rows, uint32_t cols, uint32_t tokens) {
  const EmbeddingConstants c{.table_rows = table_rows, .cols = cols};
  return MakeLaunch(WeightKernel(KernelIndex::kEmbeddingF32, table_type), c, {tokens, 1, 1});
}

Launch LaunchRmsNorm(uint32_t rows, uint32_t cols, float eps, bool has_weight,
                     ActivationFormat out) {
  const RmsNormConstants c{.cols = cols, .eps = eps, .has_weight = has_weight ? 1u : 0u};
  const bool q8 = out == ActivationFormat::kQ8;
  const KernelIndex kernel =
      has_weight ? (q8 ? KernelIndex::kRmsNormQ8 : KernelIndex::kRmsNormF32)
                 : (q8 ? KernelIndex::kRmsNormPlainQ8 : KernelIndex::kRmsNormPlainF32);
  return MakeLaunch(kernel, c, {rows, 1, 1});
}

Launch LaunchQuantize(uint32_t rows, uint32_t cols, ActivationFormat out) {
  const QuantizeConstants c{.cols = cols, .cols_per_group = std::min(cols, kCheapCols)};
  return MakeLaunch(
      out == ActivationFormat::kQ8 ? KernelIndex::kQuantizeQ8 : KernelIndex::kQuantizeF32, c,
      {CeilDiv(cols, c.cols_per_group), rows, 1});
}

Launch LaunchHeadNorm(uint32_t rows, uint32_t cols, uint32_t head_dim, float eps, bool has_weight,
                      Target target) {
  const HeadNormRopeConstants c{.cols = cols,
                                .head_dim = head_dim,
                                .eps = eps,
                                .has_norm = 1,
                                .has_weight = has_weight ? 1u : 0u};
  return HeadLaunch(has_weight ? KernelIndex::kHeadNorm : KernelIndex::kHeadNormPlain, c, rows,
                    target);
}

Launch LaunchHeadNormRope(uint32_t rows, uint32_t cols, uint32_t head_dim, float eps,
                          bool has_weight, uint32_t first_position, float base, Target target) {
  const HeadNormRopeConstants c{.cols = cols,
                                .head_dim = head_dim,
                                .first_position = first_position,
                                .eps = eps,
                                .base = base,
                                .has_norm = 1,
                                .has_weight = has_weight ? 1u : 0u,
                                .has_rope = 1};
  return HeadLaunch(has_weight ? KernelIndex::kHeadNormRope : KernelIndex::kHeadNormRopePlain, c,
                    rows, target);
}

Launch LaunchRope(uint32_t rows, uint32_t cols, uint32_t head_dim, uint32_t first_position,
                  float base, Target target) {
  const HeadNormRopeConstants c{.cols = cols,
                                .head_dim = head_dim,
                                .first_position = first_position,
                                .base = base,
                                .has_rope = 1};
  return HeadLaunch(KernelIndex::kRope, c, rows, target);
}

Launch LaunchKvAppend(DType cache_type, uint32_t rows, uint32_t cols) {
  const KvAppendConstants c{.cols = cols};
  return MakeLaunch(
      cache_type == DType::kF16 ? KernelIndex::kKvAppendF16 : KernelIndex::kKvAppendF32, c,
      {rows, 1, 1});
}

Launch LaunchAttention(DType cache_type, ActivationFormat out, uint32_t tokens, uint32_t heads,
                       uint32_t kv_heads, uint32_t head_dim, uint32_t first_position, float scale,
                       Target target) {
  const bool spirv = target == Target::kSpirv;
  const uint32_t heads_per_group = AttentionHeadsPerGroup(heads, kv_heads);
  const AttentionConstants c{
      .tokens = tokens,
      .heads = heads,
      .kv_heads = kv_heads,
      .head_dim = head_dim,
      .first_position = first_position,
      .heads_per_group = heads_per_group,
      .tokens_per_group = std::min(tokens, kAttentionMaxQueries / heads_per_group),
      .scale = scale};
  const bool q8 = out == ActivationFormat::kQ8;
  const KernelIndex kernel =
      cache_type == DType::kF16
          ? (q8 ? KernelIndex::kAttentionF16ToQ8 : KernelIndex::kAttentionF16ToF32)
          : (q8 ? KernelIndex::kAttentionF32ToQ8 : KernelIndex::kAttentionF32ToF32);
  if (spirv) {
    const uint64_t blocks = SpirvAttentionBlocks(tokens, heads / kv_heads, kSpirvQueriesPerGroup);
    const auto planes = static_cast<uint32_t>((blocks + kSpirvMaxGrid - 1) / kSpirvMaxGrid);
    return MakeLaunch(kernel, c,
                      {kv_heads, static_cast<uint32_t>((blocks + planes - 1) / planes), planes});
  }
  const uint32_t shared = c.tokens_per_group * heads_per_group * head_dim * uint32_t{sizeof(float)};
  return MakeLaunch(kernel, c, {heads / heads_per_group, CeilDiv(tokens, c.tokens_per_group), 1},
                    shared);
}

std::optional<AttentionSplit> SplitAttention(uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                                             uint32_t head_dim, uint32_t first_position) {
  const uint32_t fan = heads / kv_heads;
  const uint64_t whole = SpirvAttentionBlocks(tokens, fan, kSpirvQueriesPerGroup);
  if (tokens > 1 && whole * kv_heads >= kSpirvEnoughGroups) return {};
  AttentionSplit split;
  split.queries = tokens > 1 || fan > 4 ? 8 : fan > 2 ? 4 : 2;
  const auto blocks = static_cast<uint32_t>(SpirvAttentionBlocks(tokens, fan, split.queries));
  const uint32_t seen = first_position + tokens;
  const bool by_run =
      tokens > 1 || uint64_t{CeilDiv(seen, kSpirvSplit * kSpirvSplitsPerRun)} * kv_heads * blocks >=
                        kSpirvEnoughRuns;
  split.splits_per_group = by_run ? kSpirvSplitsPerRun : 1;
  const uint32_t units = CeilDiv(seen, split.splits_per_group * kSpirvSplit);
  split.grid = {kv_heads, blocks, units};
  // An output, a maximum and a sum each.
  split.partial_bytes = uint64_t{units} * tokens * heads * (head_dim + 2) * sizeof(float);
  const uint32_t runs = by_run ? 0 : CeilDiv(units, kSpirvSplitsPerRun);
  split.counter_bytes = uint64_t{kv_heads} * blocks * (runs + 1) * sizeof(uint32_t);
  return split;
}

Launch LaunchAttentionSplit(DType cache_type, const AttentionSplit& split,
                            const AttentionSplitConstants& constants) {
  using enum KernelIndex;
  const bool f16 = cache_type == DType::kF16;
  const KernelIndex kernel = split.queries == 2 ? (f16 ? kAttentionSplit2F16 : kAttentionSplit2F32)
                             : split.queries == 4
                                 ? (f16 ? kAttentionSplit4F16 : kAttentionSplit4F32)
                                 : (f16 ? kAttentionSplit8F16 : kAttentionSplit8F32);
  return MakeLaunch(kernel, constants, split.grid);
}

bool AttentionWritesWholeBlocks(uint32_t heads, uint32_t kv_heads, uint32_t head_dim) {
  return AttentionHeadsPerGroup(heads, kv_heads) * head_dim % kQ8Block == 0;
}

Launch LaunchSiluMul(uint32_t rows, uint32_t cols, ActivationFormat out) {
  const SiluMulConstants c{.cols = cols, .cols_per_group = std::min(cols, kExpCols)};
  return MakeLaunch(
      out == ActivationFormat::kQ8 ? KernelIndex::kSiluMulQ8 : KernelIndex::kSiluMulF32, c,
      {CeilDiv(cols, c.cols_per_group), rows, 1});
}

Launch LaunchAdd(uint32_t count, Target target) {
  const uint32_t per_group = target == Target::kSpirv ? SpirvElementsPerGroup(count) : kCheapCols;
  const ElementwiseConstants c{.count = count, .per_group = std::min(count, per_group)};
  return MakeLaunch(KernelIndex::kAdd, c, {CeilDiv(count, c.per_group), 1, 1});
}

Launch LaunchMul(uint32_t count, Target target) {
  Launch launch = LaunchAdd(count, target);
  launch.kernel = KernelIndex::kMul;
  return launch;
}

Launch LaunchRoute(uint32_t tokens, uint32_t experts, uint32_t used, bool normalise,
                   Target target) {
  const RouteConstants c{.experts = experts, .used = used, .normalise = normalise ? 1u : 0u};
  const uint32_t shared = CeilDiv(experts, 16) * 16 * uint32_t{sizeof(float)};
  return MakeLaunch(KernelIndex::kRoute, c, {tokens, 1, 1}, target == Target::kSpirv ? 0 : shared);
}

Launch LaunchWeightedSum(uint32_t tokens, uint32_t cols, uint32_t used, bool add_residual) {
  const WeightedSumConstants c{.cols = cols,
                               .used = used,
                               .cols_per_group = std::min(cols, 1024u),
                               .add_residual = add_residual ? 1u : 0u};
  return MakeLaunch(add_residual ? KernelIndex::kWeightedSumAdd : KernelIndex::kWeightedSum, c,
                    {CeilDiv(cols, c.cols_per_group), tokens, 1});
}

Launch LaunchArgMax(uint32_t rows, uint32_t cols) {
  return MakeLaunch(KernelIndex::kArgMax, ArgMaxConstants{.cols = cols}, {rows, 1, 1});
}

}  // namespace assay::kernels
