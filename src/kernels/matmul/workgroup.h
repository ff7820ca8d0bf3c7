// The workgroup functions of matmul and matmul_by_expert around a TileFn.
#ifndef ASSAY_KERNELS_MATMUL_WORKGROUP_H_
#define ASSAY_KERNELS_MATMUL_WORKGROUP_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/activations.h"
#include "kernels/launch.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/tile.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"

namespace assay::kernels {

// A weight type as the workgroups need it.
template <DType kType>
struct WeightLayout;
template <uint32_t kBlock, uint32_t kBytes, bool kQuantised>
struct WeightLayoutOf {
  static constexpr uint64_t RowBytes(uint32_t cols) { return uint64_t{cols} / kBlock * kBytes; }
  static constexpr uint64_t InputRowBytes(uint32_t cols) {
    return kQuantised ? QuantizedRowBytes(cols) : uint64_t{cols} * sizeof(float);
  }
};
template <>
struct WeightLayout<DType::kF32> : WeightLayoutOf<1, 4, false> {};
template <>
struct WeightLayout<DType::kF16> : WeightLayoutOf<1, 2, false> {};
template <>
struct WeightLayout<DType::kBF16> : WeightLayoutOf<1, 2, false> {};
template <>
struct WeightLayout<DType::kQ8_0> : WeightLayoutOf<32, 34, true> {};
template <>
struct WeightLayout<DType::kQ4_0> : WeightLayoutOf<32, 18, true> {};

// Group (x, y): rows x * rows_per_group..., tokens y * tokens_per_group...
template <DType kType, TileFn kTile>
void MatMulWorkgroup(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<MatMulConstants>(args);
  Tile tile;
  tile.weights = args.bindings[0];
  tile.row_bytes = WeightLayout<kType>::RowBytes(c.cols);
  tile.row_begin = group.x * c.rows_per_group;
  tile.row_end = std::min(c.rows, tile.row_begin + c.rows_per_group);
  tile.rows = c.rows;
  tile.cols = c.cols;
  tile.scratch = args.shared.data();
  const uint64_t x_stride = WeightLayout<kType>::InputRowBytes(c.cols);
  const uint32_t begin = group.y * c.tokens_per_group;
  const uint32_t end = std::min(c.tokens, begin + c.tokens_per_group);
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t slot = tile.tokens++;
    tile.x[slot] = args.bindings[1] + i * x_stride;
    tile.out[slot] = reinterpret_cast<float*>(args.bindings[2]) + uint64_t{i} * c.rows;
    if (c.add_residual != 0) {
      tile.residual[slot] = reinterpret_cast<const float*>(args.bindings[3]) + uint64_t{i} * c.rows;
    }
  }
  kTile(tile);
}

// Rows [begin, end) of every pair in the tile's list become zero.
inline void ZeroRows(float* out, uint32_t begin, uint32_t end) {
  std::fill(out + begin, out + end, 0.0f);
}

// Group (x, y): rows x * rows_per_group... of pair y, or with `by_expert` of every pair of expert
// y. A pair whose expert does not exist gives zeros.
template <DType kType, TileFn kTile>
void MatMulByExpertWorkgroup(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<MatMulByExpertConstants>(args);
  const int32_t* ids = reinterpret_cast<const int32_t*>(args.bindings[1]);
  float* out = reinterpret_cast<float*>(args.bindings[3]);
  const uint64_t x_stride = WeightLayout<kType>::InputRowBytes(c.cols);
  Tile tile;
  tile.row_bytes = WeightLayout<kType>::RowBytes(c.cols);
  tile.row_begin = group.x * c.rows_per_group;
  tile.row_end = std::min(c.rows, tile.row_begin + c.rows_per_group);
  tile.rows = c.rows;
  tile.cols = c.cols;
  tile.scratch = args.shared.data();

  const uint32_t first_pair = c.by_expert != 0 ? 0 : group.y;
  const uint32_t end_pair = c.by_expert != 0 ? c.pairs : group.y + 1;
  for (uint32_t pair = first_pair; pair < end_pair; ++pair) {
    // As unsigned, a negative id is as large as one past the end.
    const uint32_t id = static_cast<uint32_t>(ids[pair]);
    if (id >= c.experts) {
      if (c.by_expert == 0 || group.y == 0) {
        ZeroRows(out + uint64_t{pair} * c.rows, tile.row_begin, tile.row_end);
      }
      continue;
    }
    if (c.by_expert != 0 && id != group.y) continue;
    tile.weights = args.bindings[0] + uint64_t{id} * c.rows * tile.row_bytes;
    const uint32_t slot = tile.tokens++;
    tile.x[slot] = args.bindings[2] + pair / c.fan * x_stride;
    tile.out[slot] = out + uint64_t{pair} * c.rows;
    if (tile.tokens == kTileTokens) {
      kTile(tile);
      tile.tokens = 0;
    }
  }
  if (tile.tokens != 0) kTile(tile);
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_MATMUL_WORKGROUP_H_
