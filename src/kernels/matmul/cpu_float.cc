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

// kRows rows by kTokens tokens with one accumulator each: more of them share loads, none sees
// another.
template <class Format, size_t kRows, size_t kTokens>
HWY_INLINE void DotRows(const std::byte* const* w, const std::byte* const* x, size_t cols,
                        float (*sums)[kTokens]) {
  V16 acc[kRows][kTokens];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t t = 0; t < kTokens; ++t) acc[r][t] = Set16(0.0f);
  }
  size_t c = 0;
  for (; c + 16 <= cols; c += 16) {
    V16 xs[kTokens];
    for (size_t t = 0; t < kTokens; ++t) xs[t] = FormatF32::Load(x[t] + c * sizeof(float));
    for (size_t r = 0; r < kRows; ++r) {
      const V16 ws = Format::Load(w[r] + c * Format::kBytes);
      for (size_t t = 0; t < kTokens; ++t) acc[r][t] = MulAdd16(ws, xs[t], acc[r][t]);
    }
  }
  if (c < cols) {
    V16 xs[kTokens];
    for (size_t t = 0; t < kTokens; ++t) {
      xs[t] = LoadFormatPart<FormatF32>(x[t] + c * sizeof(float), cols - c);
    }
    for (size_t r = 0; r < kRows; ++r) {
      const V16 ws = LoadFormatPart<Format>(w[r] + c * Format::kBytes, cols - c);
      for (size_t t = 0; t < kTokens; ++t) acc[r][t] = MulAdd16(ws, xs[t], acc[r][t]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t t = 0; t < kTokens; ++t) sums[r][t] = Sum16(acc[r][t]);
  }
}

template <class Format, size_t kRows, size_t kTokens>
HWY_INLINE void TileBlock(const Tile& tile, uint32_t row, uint32_t token) {
  const std::byte* w[kRows];
  // Rows past the end repeat the last one; their sums are dropped.
  const uint32_t rows = HWY_MIN(uint32_t{kRows}, tile.row_end - row);
  for (uint32_t r = 0; r < kRows; ++r) {
    w[r] = tile.weights + uint64_t{row + HWY_MIN(r, rows - 1)} * tile.row_bytes;
  }
  float sums[kRows][kTokens];
  DotRows<Format, kRows, kTokens>(w, tile.x + token, tile.cols, sums);
  for (uint32_t t = 0; t < kTokens; ++t) {
    float* out = tile.out[token + t] + row;
    const float* residual = tile.residual[token + t];
    for (uint32_t r = 0; r < rows; ++r) {
      out[r] = residual == nullptr ? sums[r][t] : sums[r][t] + residual[row + r];
    }
  }
}

template <class Format>
HWY_INLINE void FloatTile(const Tile& tile) {
  constexpr uint32_t kRows = 4;
  constexpr uint32_t kTokens = kVecs == 1 ? 4 : kVecs == 2 ? 2 : 1;
  for (uint32_t row = tile.row_begin; row < tile.row_end; row += kRows) {
    uint32_t token = 0;
    for (; token + kTokens <= tile.tokens; token += kTokens) {
      TileBlock<Format, kRows, kTokens>(tile, row, token);
    }
    for (; token < tile.tokens; ++token) TileBlock<Format, kRows, 1>(tile, row, token);
  }
}

void TileF32(const Tile& tile) { FloatTile<FormatF32>(tile); }
void TileF16(const Tile& tile) { FloatTile<FormatF16>(tile); }
void TileBF16(const Tile& tile) { FloatTile<FormatBF16>(tile); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
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
