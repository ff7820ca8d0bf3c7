#include "kernels/matmul/matmul.h"
#include "kernels/matmul/tile.h"
#include "kernels/matmul/workgroup.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/cpu_float.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/pick.h"
#include "kernels/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// kRows rows by kTokens tokens with two accumulators each: more of them share loads, none sees
// another.
template <class Format, size_t kRows, size_t kTokens>
HWY_INLINE void DotRows(const std::byte* const* w, const std::byte* const* x, size_t cols,
                        float (*sums)[kTokens]) {
  V16 acc[kRows][kTokens][2];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t t = 0; t < kTokens; ++t) acc[r][t][0] = acc[r][t][1] = Set16(0.0f);
  }
  const auto add = [&](const auto& load_x, const auto& load_w, size_t half) HWY_ATTR {
    V16 xs[kTokens];
    for (size_t t = 0; t < kTokens; ++t) xs[t] = load_x(x[t]);
    for (size_t r = 0; r < kRows; ++r) {
      const V16 ws = load_w(w[r]);
      for (size_t t = 0; t < kTokens; ++t) acc[r][t][half] = MulAdd16(ws, xs[t], acc[r][t][half]);
    }
  };
  const auto add_whole = [&](size_t c, size_t half) HWY_ATTR {
    add([&](const std::byte* p) HWY_ATTR { return FormatF32::Load(p + c * sizeof(float)); },
        [&](const std::byte* p) HWY_ATTR { return Format::Load(p + c * Format::kBytes); }, half);
  };
  size_t c = 0;
  for (; c + 32 <= cols; c += 32) {
    add_whole(c, 0);
    add_whole(c + 16, 1);
  }
  size_t half = 0;
  if (c + 16 <= cols) {
    add_whole(c, 0);
    c += 16;
    half = 1;
  }
  if (c < cols) {
    const size_t count = cols - c;
    add([&](const std::byte* p)
            HWY_ATTR { return LoadFormatPart<FormatF32>(p + c * sizeof(float), count); },
        [&](const std::byte* p)
            HWY_ATTR { return LoadFormatPart<Format>(p + c * Format::kBytes, count); },
        half);
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t t = 0; t < kTokens; ++t) sums[r][t] = Sum16(Add16(acc[r][t][0], acc[r][t][1]));
  }
}

template <class Format, size_t kRows, size_t kTokens>
HWY_INLINE void TileBlock(const Tile& tile, uint32_t row, uint32_t token) {
  const std::byte* w[kRows];
  for (uint32_t r = 0; r < kRows; ++r) w[r] = tile.weights + uint64_t{row + r} * tile.row_bytes;
  float sums[kRows][kTokens];
  DotRows<Format, kRows, kTokens>(w, tile.x + token, tile.cols, sums);
  for (uint32_t t = 0; t < kTokens; ++t) {
    float* out = tile.out[token + t] + row;
    const float* residual = tile.residual[token + t];
    for (uint32_t r = 0; r < kRows; ++r) {
      out[r] = residual == nullptr ? sums[r][t] : sums[r][t] + residual[row + r];
    }
  }
}

template <class Format, size_t kRows, size_t kTokens>
HWY_INLINE void TokensOf(const Tile& tile, uint32_t row) {
  uint32_t token = 0;
  for (; token + kTokens <= tile.tokens; token += kTokens) {
    TileBlock<Format, kRows, kTokens>(tile, row, token);
  }
  for (; token < tile.tokens; ++token) TileBlock<Format, kRows, 1>(tile, row, token);
}

template <class Format>
HWY_INLINE void FloatTile(const Tile& tile) {
  // As many accumulators as registers hold beside the operands.
  constexpr uint32_t kRows = kVecs == 1 ? 4 : kVecs == 2 ? 2 : 1;
  constexpr uint32_t kTokens = kVecs == 1 ? 3 : 2;
  uint32_t row = tile.row_begin;
  // One token is bound by memory, and one row after another is the one stream that the processor
  // fetches ahead by itself.
  if (tile.tokens > 1) {
    for (; row + kRows <= tile.row_end; row += kRows) TokensOf<Format, kRows, kTokens>(tile, row);
  }
  for (; row < tile.row_end; ++row) TokensOf<Format, 1, kTokens>(tile, row);
}

void TileF32(const Tile& tile) { FloatTile<FormatF32>(tile); }
void TileF16(const Tile& tile) { FloatTile<FormatF16>(tile); }
void TileBF16(const Tile& tile) { FloatTile<FormatBF16>(tile); }

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK_TILE(PickMatMulF32, DType::kF32, MatMulWorkgroup, TileF32);
ASSAY_PICK_TILE(PickMatMulF16, DType::kF16, MatMulWorkgroup, TileF16);
ASSAY_PICK_TILE(PickMatMulBF16, DType::kBF16, MatMulWorkgroup, TileBF16);
ASSAY_PICK_TILE(PickMatMulByExpertF32, DType::kF32, MatMulByExpertWorkgroup, TileF32);
ASSAY_PICK_TILE(PickMatMulByExpertF16, DType::kF16, MatMulByExpertWorkgroup, TileF16);
ASSAY_PICK_TILE(PickMatMulByExpertBF16, DType::kBF16, MatMulByExpertWorkgroup, TileBF16);

}  // namespace assay::kernels
#endif  // HWY_ONCE
