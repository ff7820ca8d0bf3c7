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
// Quantised rows are taken in groups of 16; a group's blocks are spread into a panel whose lanes
// are the rows. So many blocks of it at a time fit the first-level cache.
inline constexpr uint32_t kTileRows = 16;
inline constexpr uint32_t kPanelBlocks = 32;
inline constexpr uint32_t kPanelBlockBytes = kTileRows * kQ8Block;
inline constexpr uint32_t kQuantScratchBytes =
    kPanelBlocks * (kPanelBlockBytes + kTileRows * uint32_t{sizeof(float)}) +
    kTileTokens * kTileRows * uint32_t{sizeof(float)};

struct Tile {
  const std::byte* weights = nullptr;  // Row 0 of the matrix.
  uint64_t row_bytes = 0;
  uint32_t row_begin = 0;
  uint32_t row_end = 0;
  uint32_t cols = 0;
  uint32_t tokens = 0;
  const std::byte* x[kTileTokens];          // Each an activation row in the weights' input format.
  float* out[kTileTokens];                  // Column 0 of each output row.
  const float* residual[kTileTokens] = {};  // Null: none.
  std::byte* scratch = nullptr;             // kQuantScratchBytes for quantised weights.
};

using TileFn = void (*)(const Tile& tile);

// Rows of one workgroup: enough bytes to be worth handing out, yet 16 workgroups where the matrix
// is large enough; a multiple of kTileRows.
constexpr uint32_t RowsPerGroup(uint32_t rows, uint64_t row_bytes) {
  constexpr uint64_t kLargest = 64 * 1024;
  constexpr uint64_t kSmallest = 16 * 1024;
  const uint64_t bytes = std::clamp(rows * row_bytes / 16, kSmallest, kLargest);
  const uint64_t groups_of_rows = std::max<uint64_t>(1, bytes / (row_bytes * kTileRows));
  return static_cast<uint32_t>(
      std::min<uint64_t>(groups_of_rows * kTileRows, (uint64_t{rows} + 15) / 16 * 16));
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_MATMUL_TILE_H_
