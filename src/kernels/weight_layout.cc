// The layout of quantised weights for compute shaders; vulkan/weights.glsl reads it.
//
// A row holds all its integers, then all its f16 scales: the bytes of ggml's blocks in another
// order. A lane of 32 takes four bytes of integers of each step: of Q8_0 four columns, so that a
// step is 128 of them, of Q4_0 eight, which are 256. Four steps make a chunk, where a row has them,
// in which the sixteen bytes of a lane come one after another, so that it loads them at once, and
// so do the four scales of the lanes that share blocks. What is left lies in the order of the
// blocks. Integers are stored without a sign: Q8_0 plus 128; Q4_0 has its own 8.
#include <cstring>
#include <vector>

#include "assay/kernels.h"

#include "kernels/weight_types.h"

namespace assay::kernels {
namespace {

constexpr uint64_t kBlock = 32;
constexpr uint64_t kLanes = 32;
constexpr uint64_t kLaneBytes = 4;
constexpr uint64_t kChunkSteps = 4;
constexpr uint64_t kScaleBytes = sizeof(uint16_t);

// Where item `i` goes of `count`, of which a step has `of_step`: in a chunk those of one place in
// the step come one after another.
uint64_t Place(uint64_t i, uint64_t count, uint64_t of_step) {
  const uint64_t chunk = kChunkSteps * of_step;
  if (i >= count / chunk * chunk) return i;
  const uint64_t in_chunk = i % chunk;
  return i - in_chunk + in_chunk % of_step * kChunkSteps + in_chunk / of_step;
}

// A lane's integers as they lie in memory: `lane` counts within the block, `b` is its number.
template <DType kType>
struct Quants;
template <>
struct Quants<DType::kQ8_0> {
  static constexpr uint64_t kLanesOfBlock = 8;
  static void Put(const std::byte* integers, uint64_t, uint64_t lane, std::byte* to) {
    for (uint64_t i = 0; i < kLaneBytes; ++i)
      to[i] = integers[lane * kLaneBytes + i] ^ std::byte{128};
  }
};
template <>
struct Quants<DType::kQ4_0> {
  static constexpr uint64_t kLanesOfBlock = 4;
  // A block's bytes hold value i in their low halves and value i + 16 in their high ones; here in
  // every second block it is the other way round (vulkan/weights.glsl says why).
  static void Put(const std::byte* integers, uint64_t b, uint64_t lane, std::byte* to) {
    for (uint64_t i = 0; i < kLaneBytes; ++i) {
      const std::byte byte = integers[lane * kLaneBytes + i];
      to[i] = b % 2 == 0 ? byte : byte >> 4 | byte << 4;
    }
  }
};

template <DType kType>
void PackRows(uint64_t rows, uint64_t cols, std::byte* bytes) {
  constexpr uint64_t kLanesOfBlock = Quants<kType>::kLanesOfBlock;
  const uint64_t block_bytes = DTypeBlockBytes(kType);
  const uint64_t blocks = cols / kBlock;
  const uint64_t lanes = blocks * kLanesOfBlock;
  // The places are the same in every row.
  std::vector<uint32_t> lane_places(lanes);
  for (uint64_t i = 0; i < lanes; ++i) {
    lane_places[i] = static_cast<uint32_t>(Place(i, lanes, kLanes) * kLaneBytes);
  }
  std::vector<uint32_t> scale_places(blocks);
  for (uint64_t b = 0; b < blocks; ++b) {
    scale_places[b] = static_cast<uint32_t>(lanes * kLaneBytes +
                                            Place(b, blocks, kLanes / kLanesOfBlock) * kScaleBytes);
  }
  std::vector<std::byte> stored(blocks * block_bytes);
  for (uint64_t r = 0; r < rows; ++r) {
    std::byte* const row = bytes + r * stored.size();
    std::memcpy(stored.data(), row, stored.size());
    for (uint64_t b = 0; b < blocks; ++b) {
      const std::byte* const block = stored.data() + b * block_bytes;
      std::memcpy(row + scale_places[b], block, kScaleBytes);
      for (uint64_t lane = 0; lane < kLanesOfBlock; ++lane) {
        Quants<kType>::Put(block + kScaleBytes, b, lane,
                           row + lane_places[b * kLanesOfBlock + lane]);
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
