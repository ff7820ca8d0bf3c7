#include "kernels/attention/attention.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// kQueries query heads of one token over one kv head: running maximum, sum and output of each.
template <class Format, size_t kQueries>
struct Run {
  const float* q[kQueries];
  float* out[kQueries];  // head_dim values, not yet divided by `sum`.
  float top[kQueries];
  float sum[kQueries];

  // Takes in `count` (up to kAttentionTile) positions; k and v are the first one's rows.
  HWY_INLINE void Tile(const std::byte* k, const std::byte* v, size_t stride, size_t count,
                       size_t head_dim, float scale) {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    HWY_ALIGN float scores[kQueries][kAttentionTile];
    for (size_t n = 0; n < kQueries; ++n) {
      for (float& score : scores[n]) score = kNone;
    }
    for (size_t p = 0; p < count; ++p) Scores(k + p * stride, head_dim, scale, p, scores);

    V16 shrink[kQueries];
    for (size_t n = 0; n < kQueries; ++n) {
      const V16 low = Load16(scores[n]);
      const V16 high = Load16(scores[n] + 16);
      const float tile_top = MaxLane16(Max16(low, high));
      const float new_top = tile_top > top[n] ? tile_top : top[n];
      shrink[n] = Exp16(Set16(top[n] - new_top));
      top[n] = new_top;
      const V16 shift = Set16(new_top);
      const V16 low_weights = Exp16(Sub16(low, shift));
      const V16 high_weights = Exp16(Sub16(high, shift));
      Store16(low_weights, scores[n]);
      Store16(high_weights, scores[n] + 16);
      const float added = Sum16(Add16(low_weights, high_weights));
      sum[n] = sum[n] * hn::GetLane(shrink[n].v[0]) + added;
    }

    size_t j = 0;
    for (; j + 32 <= head_dim; j += 32) Values<2>(v, stride, count, j, shrink, scores);
    for (; j + 16 <= head_dim; j += 16) Values<1>(v, stride, count, j, shrink, scores);
    if (j < head_dim) ValuesPart(v, stride, count, j, head_dim - j, shrink, scores);
  }

 private:
  HWY_INLINE void Scores(const std::byte* k, size_t head_dim, float scale, size_t p,
                         float (*scores)[kAttentionTile]) {
    V16 dots[kQueries];
    for (size_t n = 0; n < kQueries; ++n) dots[n] = Set16(0.0f);
    size_t j = 0;
    for (; j + 16 <= head_dim; j += 16) {
      const V16 key = Format::Load(k + j * Format::kBytes);
      for (size_t n = 0; n < kQueries; ++n) dots[n] = MulAdd16(key, Load16(q[n] + j), dots[n]);
    }
    if (j < head_dim) {
      const V16 key = LoadFormatPart<Format>(k + j * Format::kBytes, head_dim - j);
      for (size_t n = 0; n < kQueries; ++n) {
        dots[n] = MulAdd16(key, LoadPart16(q[n] + j, head_dim - j), dots[n]);
      }
    }
    for (size_t n = 0; n < kQueries; ++n) scores[n][p] = Sum16(dots[n]) * scale;
  }

  // Columns j .. j + 16 * kWide of the output.
  template <size_t kWide>
  HWY_INLINE void Values(const std::byte* v, size_t stride, size_t count, size_t j,
                         const V16* shrink, float (*weights)[kAttentionTile]) {
    V16 sums[kQueries][kWide];
    for (size_t n = 0; n < kQueries; ++n) {
      for (size_t w = 0; w < kWide; ++w) sums[n][w] = Mul16(Load16(out[n] + j + w * 16), shrink[n]);
    }
    for (size_t p = 0; p < count; ++p) {
      V16 values[kWide];
      for (size_t w = 0; w < kWide; ++w) {
        values[w] = Format::Load(v + p * stride + (j + w * 16) * Format::kBytes);
      }
      for (size_t n = 0; n < kQueries; ++n) {
        const V16 weight = Set16(weights[n][p]);
        for (size_t w = 0; w < kWide; ++w) sums[n][w] = MulAdd16(weight, values[w], sums[n][w]);
      }
    }
    for (size_t n = 0; n < kQueries; ++n) {
      for (size_t w = 0; w < kWide; ++w) Store16(sums[n][w], out[n] + j + w * 16);
    }
  }

  HWY_INLINE void ValuesPart(const std::byte* v, size_t stride, size_t count, size_t j, size_t cols,
                             const V16* shrink, float (*weights)[kAttentionTile]) {
    for (size_t n = 0; n < kQueries; ++n) {
      V16 added = Mul16(LoadPart16(out[n] + j, cols), shrink[n]);
      for (size_t p = 0; p < count; ++p) {
        const V16 value = LoadFormatPart<Format>(v + p * stride + j * Format::kBytes, cols);
        added = MulAdd16(Set16(weights[n][p]), value, added);
      }
      StorePart16(added, out[n] + j, cols);
    }
  }
};

// Heads [head, head + kQueries) of one token; the result goes to `result`, head_dim values each.
template <class Format, size_t kQueries>
HWY_NOINLINE void Heads(const AttentionConstants& c, const float* q, const std::byte* k,
                        const std::byte* v, size_t seen, float* result) {
  Run<Format, kQueries> run;
  for (size_t n = 0; n < kQueries; ++n) {
    run.q[n] = q + n * c.head_dim;
    run.out[n] = result + n * c.head_dim;
    run.top[n] = -std::numeric_limits<float>::infinity();
    run.sum[n] = 0.0f;
  }
  std::memset(result, 0, kQueries * c.head_dim * sizeof(float));
  const size_t stride = size_t{c.kv_heads} * c.head_dim * Format::kBytes;
  for (size_t p = 0; p < seen; p += kAttentionTile) {
    run.Tile(k + p * stride, v + p * stride, stride, HWY_MIN(size_t{kAttentionTile}, seen - p),
             c.head_dim, c.scale);
  }
  for (size_t n = 0; n < kQueries; ++n) {
    for (size_t j = 0; j < c.head_dim; ++j) run.out[n][j] /= run.sum[n];
  }
}

// Group (x, y): query heads x * heads_per_group... (all over one kv head) of tokens y *
// tokens_per_group...
template <class Format, bool kQuantised>
HWY_INLINE void Attention(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<AttentionConstants>(args);
  const uint32_t head = group.x * c.heads_per_group;
  const uint32_t kv_head = head / (c.heads / c.kv_heads);
  const size_t kv_offset = size_t{kv_head} * c.head_dim * Format::kBytes;
  const uint64_t cols = uint64_t{c.heads} * c.head_dim;
  const std::byte* k = args.bindings[1] + kv_offset;
  const std::byte* v = args.bindings[2] + kv_offset;
  float* scratch = reinterpret_cast<float*>(args.shared.data());
  const uint32_t begin = group.y * c.tokens_per_group;
  const uint32_t end = HWY_MIN(c.tokens, begin + c.tokens_per_group);
  for (uint32_t i = begin; i < end; ++i) {
    const size_t seen = size_t{c.first_position} + i + 1;
    const size_t first = size_t{head} * c.head_dim;
    const float* q = reinterpret_cast<const float*>(args.bindings[0]) + i * cols + first;
    float* result =
        kQuantised ? scratch : reinterpret_cast<float*>(args.bindings[3]) + i * cols + first;
    uint32_t h = 0;
    for (; h + 4 <= c.heads_per_group; h += 4) {
      Heads<Format, 4>(c, q + h * c.head_dim, k, v, seen, result + h * c.head_dim);
    }
    for (; h + 2 <= c.heads_per_group; h += 2) {
      Heads<Format, 2>(c, q + h * c.head_dim, k, v, seen, result + h * c.head_dim);
    }
    for (; h < c.heads_per_group; ++h) {
      Heads<Format, 1>(c, q + h * c.head_dim, k, v, seen, result + h * c.head_dim);
    }
    if (kQuantised) {
      const QuantizedRow out(args.bindings[3] + i * QuantizedRowBytes(cols), cols);
      for (size_t j = 0; j < size_t{c.heads_per_group} * c.head_dim; j += kQ8Block) {
        const size_t b = (first + j) / kQ8Block;
        QuantizeBlock(Load16(scratch + j), Load16(scratch + j + 16), out.values + first + j,
                      out.scales + b, out.sums + b);
      }
    }
  }
}

void AttentionF32ToF32(const gpu::CpuKernelArgs& args, Extent3 group) {
  Attention<FormatF32, false>(args, group);
}
void AttentionF32ToQ8(const gpu::CpuKernelArgs& args, Extent3 group) {
  Attention<FormatF32, true>(args, group);
}
void AttentionF16ToF32(const gpu::CpuKernelArgs& args, Extent3 group) {
  Attention<FormatF16, false>(args, group);
}
void AttentionF16ToQ8(const gpu::CpuKernelArgs& args, Extent3 group) {
  Attention<FormatF16, true>(args, group);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickAttentionF32ToF32, AttentionF32ToF32);
ASSAY_PICK(PickAttentionF32ToQ8, AttentionF32ToQ8);
ASSAY_PICK(PickAttentionF16ToF32, AttentionF16ToF32);
ASSAY_PICK(PickAttentionF16ToQ8, AttentionF16ToQ8);

}  // namespace assay::kernels
#endif  // HWY_ONCE
