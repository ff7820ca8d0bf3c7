// What a workgroup of the compute shaders takes. The numbers are those of the shaders, which say
// what they do with them; the grids of the launches stay within what every device takes.
#ifndef ASSAY_KERNELS_VULKAN_GRIDS_H_
#define ASSAY_KERNELS_VULKAN_GRIDS_H_

#include <algorithm>
#include <cstdint>

namespace assay::kernels {

// Workgroups in each direction of a grid, on every device.
inline constexpr uint32_t kSpirvMaxGrid = 65535;

// Matrix products: eight groups of lanes, each with 1, 2 or 4 rows. With many rows 4 still fill a
// large device, and share what they load of x; several tokens share the loads of the rows as well.
inline constexpr uint32_t kSpirvManyRows = 16384;
inline constexpr uint32_t kSpirvFewRows = 2048;
constexpr uint32_t SpirvTokensPerGroup(uint32_t tokens) { return tokens == 1 ? 1 : 4; }
constexpr uint32_t SpirvRowsPerGroup(uint32_t rows, uint32_t tokens) {
  if (tokens > 1 || rows >= kSpirvManyRows) return 32;
  return rows <= kSpirvFewRows ? 8 : 16;
}
// By expert: 2 rows a group of lanes for one pair, or 4 for all pairs of an expert, where there are
// as many pairs as kSpirvPairsPerExpert for each.
inline constexpr uint32_t kSpirvExpertRowsPerGroup = 16;
inline constexpr uint32_t kSpirvSharedRowsPerGroup = 32;
inline constexpr uint32_t kSpirvPairsPerExpert = 4;
// Of gate_up: half of the groups of lanes multiply with the gate, half with up.
inline constexpr uint32_t kSpirvGateUpRowsPerGroup = 8;
// Of products that are summed over a token's experts: the groups of lanes take the experts.
inline constexpr uint32_t kSpirvSummedRowsPerGroup = 4;

// Of products by cooperative matrices: a tile of so many rows and tokens, or a small one where
// there are fewer tiles than a large device has places for. The shader is compiled with the same
// numbers (vulkan/shaders.cmake).
inline constexpr uint32_t kSpirvCooperativeTile = 128;
inline constexpr uint32_t kSpirvCooperativeSmallTile = 64;
inline constexpr uint64_t kSpirvCooperativeFewTiles = 64;
// By expert: rows of a tile, and the invocations that share it.
inline constexpr uint32_t kSpirvCooperativeExpertRows = 64;
inline constexpr uint32_t kSpirvCooperativeExpertThreads = 128;

inline constexpr uint32_t kSpirvHeadsPerGroup = 4;

// Attention: what a workgroup takes where it takes all positions of its queries, and how many such
// workgroups are enough. Fewer share the positions instead: whole runs of 16 splits of 64
// positions, or, of one token whose runs are fewer than kSpirvEnoughRuns workgroups, single splits.
inline constexpr uint32_t kSpirvQueriesPerGroup = 8;
inline constexpr uint32_t kSpirvEnoughGroups = 128;
inline constexpr uint32_t kSpirvEnoughRuns = 128;
inline constexpr uint32_t kSpirvSplit = 64;
inline constexpr uint32_t kSpirvSplitsPerRun = 16;

// Of a router's row.
inline constexpr uint32_t kSpirvMaxExperts = 1024;

constexpr uint32_t SpirvElementsPerGroup(uint32_t count) {
  constexpr uint32_t kFew = 1024;
  return std::max(kFew, (count / kSpirvMaxGrid + 1 + 255) / 256 * 256);
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_VULKAN_GRIDS_H_
