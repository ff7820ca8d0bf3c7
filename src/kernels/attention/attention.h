// attention: causal, query heads in groups over kv heads. Token i stands at position first_position
// + i and sees cache rows 0 .. first_position + i.
//
// Bindings: q (f32, read), rows 0 .. last of the k cache and of the v cache (read), out (write; f32
// or kQ8).
//
// Order, the same for a token alone and in a chunk: positions go in tiles of kAttentionTile from
// position 0. A score is q.k in 16 lanes by fused multiply-add, folded as in simd/vec-inl.h, then
// times scale. After each tile the running maximum m, sum l and output o become
//   m' = max(m, tile's maximum), l' = l * e^(m - m') + sum of e^(s - m'), o' = o * e^(m - m') + sum
//   of e^(s - m') v,
// the tile's exponentials added in lanes, the values in order of position. Last o / l.
// Tolerance against float64 on the same operands: 1e-5 * largest |v| in f32; kQ8 adds half a step.
#ifndef ASSAY_KERNELS_ATTENTION_ATTENTION_H_
#define ASSAY_KERNELS_ATTENTION_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

inline constexpr uint32_t kAttentionTile = 32;
inline constexpr uint32_t kAttentionMaxHeadDim = 256;
// Query heads over one kv head that one workgroup takes at most, and queries: those heads of some
// tokens.
inline constexpr uint32_t kAttentionMaxHeads = 8;
inline constexpr uint32_t kAttentionMaxQueries = 32;

struct AttentionConstants {
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t first_position = 0;
  uint32_t heads_per_group = 0;
  uint32_t tokens_per_group = 0;
  float scale = 0;
};

// `cache_type` is kF32 or kF16.
Launch LaunchAttention(DType cache_type, ActivationFormat out, uint32_t tokens, uint32_t heads,
                       uint32_t kv_heads, uint32_t head_dim, uint32_t first_position, float scale,
                       Target target = Target::kCpu);

// How workgroups of shaders share the positions of each query: which kernel, how much each takes,
// and what room they need (Ops::Attention).
struct AttentionSplit {
  uint32_t queries = 0;
  uint32_t splits_per_group = 0;
  Extent3 grid;
  uint64_t partial_bytes = 0;
  uint64_t counter_bytes = 0;
};
struct AttentionSplitConstants {
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t first_position = 0;
  uint32_t splits_per_group = 0;
  float scale = 0;
};

// Nothing for so many tokens that a device is busy without; that and the kernel do not depend on
// the positions.
std::optional<AttentionSplit> SplitAttention(uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                                             uint32_t head_dim, uint32_t first_position);
Launch LaunchAttentionSplit(DType cache_type, const AttentionSplit& split,
                            const AttentionSplitConstants& constants);

// True when the heads that one workgroup takes fill whole kQ8 blocks, as a kQ8 output needs.
bool AttentionWritesWholeBlocks(uint32_t heads, uint32_t kv_heads, uint32_t head_dim);

gpu::CpuWorkgroupFn PickAttentionF32ToF32(Isa isa);
gpu::CpuWorkgroupFn PickAttentionF32ToQ8(Isa isa);
gpu::CpuWorkgroupFn PickAttentionF16ToF32(Isa isa);
gpu::CpuWorkgroupFn PickAttentionF16ToQ8(Isa isa);

void ReferenceAttention(std::span<const double> q, std::span<const double> k_cache,
                        std::span<const double> v_cache, uint32_t heads, uint32_t kv_heads,
                        uint32_t head_dim, uint32_t first_position, double scale,
                        std::span<double> out);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_ATTENTION_ATTENTION_H_
