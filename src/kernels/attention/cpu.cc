#include <limits>

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

// A run of queries over one kv head: any heads of any tokens of the workgroup.
struct Query {
  const float* q;
  float* out;  // head_dim values, not yet divided by `sum`.
  float top;   // Of the scores so far.
  float sum;   // Of the exponentials so far.
};

// Rows of the k or v cache of one kv head.
struct CacheRows {
  const std::byte* first;
  size_t stride;
  const std::byte* At(size_t row) const { return first + row * stride; }
};

constexpr float kNone = -std::numeric_limits<float>::infinity();

// Asks for the row one tile behind `row`, if it lies below `end`: rows of one head lie too far
// apart for the processor to fetch them by itself.
template <class Format>
HWY_INLINE void FetchNextTile(const CacheRows& cache, size_t row, size_t end, size_t head_dim) {
  if (row + kAttentionTile >= end) return;
  const std::byte* next = cache.At(row + kAttentionTile);
  for (size_t i = 0; i < head_dim * Format::kBytes; i += 64) __builtin_prefetch(next + i, 0, 2);
}

// sums[n][r] = q[n].k[r], not yet folded, for kRows rows.
template <class Format, size_t kQueries, size_t kRows>
HWY_INLINE void Dots(const Query* queries, const std::byte* const* k, size_t head_dim,
                     V16 (*sums)[kRows]) {
  for (size_t n = 0; n < kQueries; ++n) {
    for (size_t r = 0; r < kRows; ++r) sums[n][r] = Set16(0.0f);
  }
  size_t j = 0;
  for (; j + 16 <= head_dim; j += 16) {
    V16 key[kRows];
    for (size_t r = 0; r < kRows; ++r) key[r] = Format::Load(k[r] + j * Format::kBytes);
    for (size_t n = 0; n < kQueries; ++n) {
      const V16 q = InRegister16(Load16(queries[n].q + j));
      for (size_t r = 0; r < kRows; ++r) sums[n][r] = MulAdd16(key[r], q, sums[n][r]);
    }
  }
  if (j < head_dim) {
    V16 key[kRows];
    for (size_t r = 0; r < kRows; ++r) {
      key[r] = LoadFormatPart<Format>(k[r] + j * Format::kBytes, head_dim - j);
    }
    for (size_t n = 0; n < kQueries; ++n) {
      const V16 q = LoadPart16(queries[n].q + j, head_dim - j);
      for (size_t r = 0; r < kRows; ++r) sums[n][r] = MulAdd16(key[r], q, sums[n][r]);
    }
  }
}

// Scores of 16 rows from `row` on, of which `count` exist; the others are computed from the last
// one, which is theirs to drop.
#if HWY_TARGET == HWY_AVX3
// The fold of simd/vec-inl.h for 16 rows at once: each step folds two vectors into one, and rows
// are paired so that the last one has them in order.
template <class Format, size_t kQueries>
HWY_INLINE void SixteenScores(const Query* queries, const CacheRows& k, size_t row, size_t count,
                              size_t fetch_end, size_t head_dim, float scale,
                              float (*scores)[kAttentionTile]) {
  __m512 folded[kQueries][8];
  for (size_t i = 0; i < 8; ++i) {
    const size_t r = i < 4 ? i : i + 4;
    const std::byte* rows[2] = {k.At(row + HWY_MIN(r, count - 1)),
                                k.At(row + HWY_MIN(r + 4, count - 1))};
    FetchNextTile<Format>(k, row + r, fetch_end, head_dim);
    FetchNextTile<Format>(k, row + r + 4, fetch_end, head_dim);
    V16 sums[kQueries][2];
    Dots<Format, kQueries, 2>(queries, rows, head_dim, sums);
    for (size_t n = 0; n < kQueries; ++n) {
      const __m512 a = sums[n][0].v[0].raw;
      const __m512 b = sums[n][1].v[0].raw;
      folded[n][i] =
          _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    }
  }
  for (size_t n = 0; n < kQueries; ++n) {
    __m512 four[4];
    for (size_t i = 0; i < 4; ++i) {
      const __m512 a = folded[n][i];
      const __m512 b = folded[n][i + 4];
      four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
    }
    const auto fold2 = [](__m512 a, __m512 b) HWY_ATTR {
      const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b));
      const __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b));
      return _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    };
    const __m512 a = fold2(four[0], four[1]);
    const __m512 b = fold2(four[2], four[3]);
    const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
    Store16(Mul16({{VF{sums}}}, Set16(scale)), scores[n]);
  }
}
#else
template <class Format, size_t kQueries>
HWY_INLINE void SixteenScores(const Query* queries, const CacheRows& k, size_t row, size_t count,
                              size_t fetch_end, size_t head_dim, float scale,
                              float (*scores)[kAttentionTile]) {
  for (size_t r = 0; r < count; ++r) {
    FetchNextTile<Format>(k, row + r, fetch_end, head_dim);
    const std::byte* rows[1] = {k.At(row + r)};
    V16 sums[kQueries][1];
    Dots<Format, kQueries, 1>(queries, rows, head_dim, sums);
    for (size_t n = 0; n < kQueries; ++n) scores[n][r] = Sum16(sums[n][0]) * scale;
  }
}
#endif

// Columns j .. j + 16 * kWide of out = out * shrink + weights . v.
template <class Format, size_t kQueries, size_t kWide>
HWY_INLINE void AddValues(const Query* queries, const CacheRows& v, size_t row, size_t count,
                          size_t fetch_end, size_t head_dim, size_t j, const V16* shrink,
                          const float (*weights)[kAttentionTile]) {
  V16 sums[kQueries][kWide];
  for (size_t n = 0; n < kQueries; ++n) {
    for (size_t w = 0; w < kWide; ++w) {
      sums[n][w] = Mul16(Load16(queries[n].out + j + w * 16), shrink[n]);
    }
  }
  for (size_t p = 0; p < count; ++p) {
    if (j == 0) FetchNextTile<Format>(v, row + p, fetch_end, head_dim);
    V16 values[kWide];
    const std::byte* columns = v.At(row + p) + j * Format::kBytes;
    for (size_t w = 0; w < kWide; ++w) values[w] = Format::Load(columns + w * 16 * Format::kBytes);
    for (size_t n = 0; n < kQueries; ++n) {
      const V16 weight = Set16(weights[n][p]);
      for (size_t w = 0; w < kWide; ++w) sums[n][w] = MulAdd16(weight, values[w], sums[n][w]);
    }
  }
  for (size_t n = 0; n < kQueries; ++n) {
    for (size_t w = 0; w < kWide; ++w) Store16(sums[n][w], queries[n].out + j + w * 16);
  }
}

// The last `cols` columns, fewer than 16.
template <class Format, size_t kQueries>
HWY_INLINE void AddLastValues(const Query* queries, const CacheRows& v, size_t row, size_t count,
                              size_t j, size_t cols, const V16* shrink,
                              const float (*weights)[kAttentionTile]) {
  for (size_t n = 0; n < kQueries; ++n) {
    V16 sum = Mul16(LoadPart16(queries[n].out + j, cols), shrink[n]);
    for (size_t p = 0; p < count; ++p) {
      const V16 value = LoadFormatPart<Format>(v.At(row + p) + j * Format::kBytes, cols);
      sum = MulAdd16(Set16(weights[n][p]), value, sum);
    }
    StorePart16(sum, queries[n].out + j, cols);
  }
}

// Takes one tile of positions, [row, row + count), into kQueries queries, and fetches what lies
// below fetch_end of the tile behind it.
template <class Format, size_t kQueries>
HWY_NOINLINE void AddTile(Query* queries, const CacheRows& k, const CacheRows& v, size_t row,
                          size_t count, size_t fetch_end, size_t head_dim, float scale) {
  HWY_ALIGN float weights[kQueries][kAttentionTile];
  for (size_t first = 0; first < kAttentionTile; first += 16) {
    float(*part)[kAttentionTile] = reinterpret_cast<float(*)[kAttentionTile]>(&weights[0][first]);
    if (first < count) {
      SixteenScores<Format, kQueries>(queries, k, row + first, HWY_MIN(count - first, size_t{16}),
                                      fetch_end, head_dim, scale, part);
    }
  }
  V16 shrink[kQueries];
  for (size_t n = 0; n < kQueries; ++n) {
    for (size_t r = count; r < kAttentionTile; ++r) weights[n][r] = kNone;
    const V16 low = Load16(weights[n]);
    const V16 high = Load16(weights[n] + 16);
    const float tile_top = MaxLane16(Max16(low, high));
    const float top = tile_top > queries[n].top ? tile_top : queries[n].top;
    shrink[n] = Exp16(Set16(queries[n].top - top));
    queries[n].top = top;
    const V16 low_weights = Exp16(Sub16(low, Set16(top)));
    const V16 high_weights = Exp16(Sub16(high, Set16(top)));
    Store16(low_weights, weights[n]);
    Store16(high_weights, weights[n] + 16);
    const float kept = queries[n].sum * hn::GetLane(shrink[n].v[0]);
    queries[n].sum = kept + Sum16(Add16(low_weights, high_weights));
  }
  // As many accumulators as registers hold.
  constexpr size_t kWide = kVecs > 1 ? 1 : kQueries > 2 ? 4 : 8;
  size_t j = 0;
  for (; j + 16 * kWide <= head_dim; j += 16 * kWide) {
    AddValues<Format, kQueries, kWide>(queries, v, row, count, fetch_end, head_dim, j, shrink,
                                       weights);
  }
  for (; j + 16 <= head_dim; j += 16) {
    AddValues<Format, kQueries, 1>(queries, v, row, count, fetch_end, head_dim, j, shrink, weights);
  }
  if (j < head_dim) {
    AddLastValues<Format, kQueries>(queries, v, row, count, j, head_dim - j, shrink, weights);
  }
}

// Queries [0, queries) of the workgroup, heads_per_group for each token, over all tiles that they
// see. first_seen is what the first token sees.
template <class Format>
HWY_INLINE void RunQueries(const AttentionConstants& c, const CacheRows& k, const CacheRows& v,
                           Query* queries, size_t count, size_t first_seen) {
  const size_t last_seen = first_seen + count / c.heads_per_group - 1;
  for (size_t row = 0; row < last_seen; row += kAttentionTile) {
    size_t n = 0;
    // A query whose token does not see all of the tile goes with those of its own token at most.
    if (row + kAttentionTile > first_seen) {
      const size_t hidden = row + 1 > first_seen ? row + 1 - first_seen : 0;
      for (n = hidden * c.heads_per_group; n < count; ++n) {
        const size_t seen = first_seen + n / c.heads_per_group;
        if (seen >= row + kAttentionTile) break;
        if (n % c.heads_per_group % 2 == 0 && n % c.heads_per_group + 2 <= c.heads_per_group) {
          AddTile<Format, 2>(queries + n, k, v, row, seen - row, 0, c.head_dim, c.scale);
          ++n;
        } else {
          AddTile<Format, 1>(queries + n, k, v, row, seen - row, 0, c.head_dim, c.scale);
        }
      }
    }
    for (; n < count;) {
      // Only the first ones fetch: the tile stays for the others.
      const size_t fetch_end = n == 0 ? last_seen : 0;
      if (n + 4 <= count) {
        AddTile<Format, 4>(queries + n, k, v, row, kAttentionTile, fetch_end, c.head_dim, c.scale);
        n += 4;
      } else if (n + 2 <= count) {
        AddTile<Format, 2>(queries + n, k, v, row, kAttentionTile, fetch_end, c.head_dim, c.scale);
        n += 2;
      } else {
        AddTile<Format, 1>(queries + n, k, v, row, kAttentionTile, fetch_end, c.head_dim, c.scale);
        n += 1;
      }
    }
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
  const size_t stride = size_t{c.kv_heads} * c.head_dim * Format::kBytes;
  const CacheRows k = {args.bindings[1] + kv_offset, stride};
  const CacheRows v = {args.bindings[2] + kv_offset, stride};
  const uint64_t cols = uint64_t{c.heads} * c.head_dim;
  const size_t first_col = size_t{head} * c.head_dim;
  const uint32_t begin = group.y * c.tokens_per_group;
  const uint32_t end = HWY_MIN(c.tokens, begin + c.tokens_per_group);

  Query queries[kAttentionMaxQueries];
  float* results = reinterpret_cast<float*>(args.shared.data());
  const size_t count = size_t{end - begin} * c.heads_per_group;
  for (size_t n = 0; n < count; ++n) {
    const size_t token = begin + n / c.heads_per_group;
    const size_t column = first_col + n % c.heads_per_group * c.head_dim;
    queries[n] = {reinterpret_cast<const float*>(args.bindings[0]) + token * cols + column,
                  results + n * c.head_dim, kNone, 0.0f};
  }
  std::memset(results, 0, count * c.head_dim * sizeof(float));
  RunQueries<Format>(c, k, v, queries, count, size_t{c.first_position} + begin + 1);

  const size_t group_cols = size_t{c.heads_per_group} * c.head_dim;
  for (size_t n = 0; n < count; ++n) {
    const float sum = queries[n].sum;
    for (size_t j = 0; j < c.head_dim; ++j) queries[n].out[j] /= sum;
  }
  for (uint32_t i = begin; i < end; ++i) {
    const float* result = results + (i - begin) * group_cols;
    if constexpr (kQuantised) {
      const QuantizedRow out(args.bindings[3] + i * QuantizedRowBytes(cols), cols);
      for (size_t j = 0; j < group_cols; j += kQ8Block) {
        const size_t b = (first_col + j) / kQ8Block;
        QuantizeBlock(Load16(result + j), Load16(result + j + 16), out.values + first_col + j,
                      out.scales + b, out.sums + b);
      }
    } else {
      float* out = reinterpret_cast<float*>(args.bindings[3]) + i * cols + first_col;
      std::memcpy(out, result, group_cols * sizeof(float));
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
