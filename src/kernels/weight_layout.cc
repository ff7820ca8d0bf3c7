// The layout of quantised weights for compute shaders; vulkan/weights.glsl reads it.
//
// A row holds all its integers, then all its f16 scales: the bytes of ggml's blocks in another
// order. A lane l of 32 takes columns 4 l to 4 l + 3 of each step of 128 columns. Where a row has
// them, steps make chunks of 16 bytes a lane, which a lane loads at once: four steps of Q8_0, eight
// of Q4_0. In a chunk the bytes of a lane come one after another, and so do the scales of the eight
// lanes that share blocks. In Q4_0 pairs of steps follow, 4 bytes a lane; what is left lies in the
// order of the columns. Integers are stored without a sign: Q8_0 plus 128; Q4_0 has its own 8.
#include <array>
#include <cstring>
#include <vector>

#include "assay/kernels.h"

#include "kernels/weight_types.h"

namespace assay::kernels {
namespace {

constexpr uint64_t kBlock = 32;
constexpr uint64_t kStep = 128;
constexpr uint64_t kLaneCols = 4;
constexpr uint64_t kScaleBytes = sizeof(uint16_t);

struct Shape {
  uint64_t chunk_steps;  // 16 bytes a lane.
  uint64_t small_steps;  // Of the smaller chunks that follow; 1: there are none.
  uint64_t bits;         // Of an integer.
};
constexpr Shape kQ8Shape = {4, 1, 8};
constexpr Shape kQ4Shape = {8, 2, 4};

// Where the integers of a lane in one step go, and the scale of a block.
uint64_t QuantPlace(const Shape& shape, uint64_t cols, uint64_t col) {
  const uint64_t step_bytes = kLaneCols * shape.bits / 8;
  const uint64_t lane = col % kStep / kLaneCols;
  for (const uint64_t steps : {shape.chunk_steps, shape.small_steps}) {
    const uint64_t chunk = steps * kStep;
    if (col >= cols / chunk * chunk) continue;
    const uint64_t step = col % chunk / kStep;
    return col / chunk * chunk * shape.bits / 8 + (lane * steps + step) * step_bytes;
  }
  return col / kLaneCols * step_bytes;
}
uint64_t ScalePlace(const Shape& shape, uint64_t cols, uint64_t block) {
  const uint64_t chunk = shape.chunk_steps * kStep / kBlock;
  if (block >= cols / kBlock / chunk * chunk) return block;
  constexpr uint64_t kBlocksOfStep = kStep / kBlock;
  const uint64_t in_chunk = block % chunk;
  return block / chunk * chunk + in_chunk % kBlocksOfStep * shape.chunk_steps +
         in_chunk / kBlocksOfStep;
}

// The four integers of a lane as they lie in memory.
template <DType kType>
struct Quants;
template <>
struct Quants<DType::kQ8_0> {
  static constexpr Shape kShape = kQ8Shape;
  static void Put(const std::byte* block, uint64_t first, std::byte* to) {
    for (uint64_t i = 0; i < kLaneCols; ++i)
      to[i] = block[kScaleBytes + first + i] ^ std::byte{128};
  }
};
template <>
struct Quants<DType::kQ4_0> {
  static constexpr Shape kShape = kQ4Shape;
  // A block's bytes hold value i in their low halves and value i + 16 in their high ones.
  static void Put(const std::byte* block, uint64_t first, std::byte* to) {
    const std::byte* from = block + kScaleBytes + first % 16;
    const int shift = first < 16 ? 0 : 4;
    for (uint64_t i = 0; i < kLaneCols; i += 2) {
      to[i / 2] = (from[i] >> shift & std::byte{15}) | (from[i + 1] >> shift & std::byte{15}) << 4;
    }
  }
};

template <DType kType>
void PackRows(uint64_t rows, uint64_t cols, std::byte* bytes) {
  constexpr Shape kShape = Quants<kType>::kShape;
  const uint64_t block_bytes = DTypeBlockBytes(kType);
  const uint64_t blocks = cols / kBlock;
  const uint64_t quant_bytes = cols * kShape.bits / 8;
  // The places are the same in every row.
  std::vector<uint32_t> quant_places(cols / kLaneCols);
  for (uint64_t i = 0; i < quant_places.size(); ++i) {
    quant_places[i] = static_cast<uint32_t>(QuantPlace(kShape, cols, i * kLaneCols));
  }
  std::vector<uint32_t> scale_places(blocks);
  for (uint64_t b = 0; b < blocks; ++b) {
    scale_places[b] =
        static_cast<uint32_t>(quant_bytes + ScalePlace(kShape, cols, b) * kScaleBytes);
  }
  std::vector<std::byte> stored(blocks * block_bytes);
  for (uint64_t r = 0; r < rows; ++r) {
    std::byte* const row = bytes + r * stored.size();
    std::memcpy(stored.data(), row, stored.size());
    for (uint64_t b = 0; b < blocks; ++b) {
      const std::byte* const block = stored.data() + b * block_bytes;
      std::memcpy(row + scale_places[b], block, kScaleBytes);
      for (uint64_t first = 0; first < kBlock; first += kLaneCols) {
        Quants<kType>::Put(block, first, row + quant_places[(b * kBlock + first) / kLaneCols]);
      }
    }
  }
}

}  // namespace

void PackWeights(DType type, uint64_t rows, uint64_t cols, std::span<std::byte> bytes) {
  if (type == DType::kQ8_0) PackRows<DType::kQ8_0>(rows, cols, bytes.data());
  if (type == DType::kQ4_0) PackRows<DType::kQ4_0>(rows, cols, bytes.data());
}

}  // namespace assay::kernels
