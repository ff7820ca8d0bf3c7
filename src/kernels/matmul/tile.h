// A tile of a matrix product: some consecutive rows of one matrix by up to kTileTokens activation
// rows that may lie anywhere. matmul and matmul_by_expert are built on it, which is why they give
// the same bits.
#ifndef ASSAY_KERNELS_MATMUL_TILE_H_
#define ASSAY_KERNELS_MATMUL_TILE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"

namespace assay::kernels {

inline constexpr uint32_t kTileTokens = 64;

// --- Quantised weights
//
// Up to kFewTokens tokens are multiplied row by row, from activations prepared for it. For more,
// rows are taken in groups of 16, and a group's blocks are spread into a panel whose lanes are the
// rows.
inline constexpr uint32_t kFewTokens = 3;
inline constexpr uint32_t kTileRows = 16;
// So many blocks of the panel at a time fit the first-level cache; a multiple of kChains.
inline constexpr uint32_t kPanelBlocks = 32;
inline constexpr uint32_t kPanelBlockBytes = kTileRows * kQ8Block;
// Partial sums of a row: block b belongs to chain b % kChains.
inline constexpr uint32_t kChains = 4;
// Longer rows, whose prepared activations would not fit shared memory, use the panel for any number
// of tokens.
inline constexpr uint32_t kMostPreparedCols = 32768;

constexpr uint64_t PaddedBlocks(uint64_t blocks) { return (blocks + 7) / 8 * 8; }
constexpr uint64_t PreparedBytes(uint64_t cols) {
  return PaddedBlocks(cols / kQ8Block) * (kQ8Block + sizeof(float) + sizeof(int32_t));
}
// The panel, its scales, what each token's integer sums start from in each of its blocks, and the
// float sums.
inline constexpr uint32_t kPanelScratchBytes =
    kPanelBlocks * kPanelBlockBytes + kPanelBlocks * kTileRows * uint32_t{sizeof(float)} +
    kTileTokens * kPanelBlocks * uint32_t{sizeof(int32_t)} +
    kTileTokens * kChains * kTileRows * uint32_t{sizeof(float)};

// A panel takes 16 rows of the matrix.
constexpr bool UsesPanel(uint32_t rows, uint32_t cols, uint32_t tokens) {
  return rows >= kTileRows && (tokens > kFewTokens || cols > kMostPreparedCols);
}
// Of a tile with up to `tokens` tokens.
constexpr uint32_t QuantScratchBytes(uint32_t rows, uint32_t cols, uint32_t tokens) {
  const uint64_t prepared = std::min(tokens, kFewTokens) * PreparedBytes(cols);
  if (rows < kTileRows) return static_cast<uint32_t>(prepared);
  if (cols > kMostPreparedCols) return kPanelScratchBytes;
  if (tokens <= kFewTokens) return static_cast<uint32_t>(prepared);
  // Matrices picked by data: their number of tokens is not known beforehand.
  return static_cast<uint32_t>(std::max<uint64_t>(prepared, kPanelScratchBytes));
}

struct Tile {
  const std::byte* weights = nullptr;  // Row 0 of the matrix.
  uint64_t row_bytes = 0;
  uint32_t row_begin = 0;
  uint32_t row_end = 0;
  uint32_t rows = 0;  // Of the matrix: what follows row_end may be fetched ahead.
  uint32_t cols = 0;
  uint32_t tokens = 0;
  const std::byte* x[kTileTokens];          // Each an activation row in the weights' input format.
  float* out[kTileTokens];                  // Column 0 of each output row.
  const float* residual[kTileTokens] = {};  // Null: none.
  std::byte* scratch = nullptr;             // QuantScratchBytes for quantised weights.
};

using TileFn = void (*)(const Tile& tile);

// Rows of one workgroup: enough bytes to be worth handing out, yet 16 workgroups where the matrix
// is large enough; a multiple of kTileRows.
constexpr uint32_t RowsPerGroup(uint32_t rows, uint64_t row_bytes) {
  constexpr uint64_t kLargest = 128 * 1024;
  constexpr uint64_t kSmallest = 16 * 1024;
  const uint64_t bytes = std::clamp(rows * row_bytes / 16, kSmallest, kLargest);
  const uint64_t groups_of_rows = std::max<uint64_t>(1, bytes / (row_bytes * kTileRows));
  return static_cast<uint32_t>(
      std::min<uint64_t>(groups_of_rows * kTileRows, (uint64_t{rows} + 15) / 16 * 16));
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_MATMUL_TILE_H_
