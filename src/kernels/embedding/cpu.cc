#include "kernels/embedding/embedding.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embedding/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// One workgroup a row.
HWY_INLINE const std::byte* TableRow(const gpu::CpuKernelArgs& args, Extent3 group,
                                     uint64_t row_bytes, uint32_t table_rows) {
  int32_t id;
  std::memcpy(&id, args.bindings[1] + uint64_t{group.x} * sizeof(id), sizeof(id));
  if (static_cast<uint32_t>(id) >= table_rows) return nullptr;
  return args.bindings[0] + static_cast<uint32_t>(id) * row_bytes;
}

template <class Format>
HWY_INLINE void EmbedPlain(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<EmbeddingConstants>(args);
  float* out = reinterpret_cast<float*>(args.bindings[2]) + uint64_t{group.x} * c.cols;
  const std::byte* row = TableRow(args, group, uint64_t{c.cols} * Format::kBytes, c.table_rows);
  if (row == nullptr) {
    std::memset(out, 0, c.cols * sizeof(float));
    return;
  }
  size_t j = 0;
  for (; j + 16 <= c.cols; j += 16) Store16(Format::Load(row + j * Format::kBytes), out + j);
  for (; j < c.cols; ++j) out[j] = Format::One(row + j * Format::kBytes);
}

void EmbedF32(const gpu::CpuKernelArgs& args, Extent3 group) { EmbedPlain<FormatF32>(args, group); }
void EmbedF16(const gpu::CpuKernelArgs& args, Extent3 group) { EmbedPlain<FormatF16>(args, group); }
void EmbedBF16(const gpu::CpuKernelArgs& args, Extent3 group) {
  EmbedPlain<FormatBF16>(args, group);
}

void EmbedQ8_0(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<EmbeddingConstants>(args);
  float* out = reinterpret_cast<float*>(args.bindings[2]) + uint64_t{group.x} * c.cols;
  const std::byte* row = TableRow(args, group, uint64_t{c.cols} / 32 * 34, c.table_rows);
  if (row == nullptr) {
    std::memset(out, 0, c.cols * sizeof(float));
    return;
  }
  for (size_t b = 0; b < c.cols / 32; ++b) {
    const std::byte* block = row + b * 34;
    const float scale = FormatF16::One(block);
    const int8_t* values = reinterpret_cast<const int8_t*>(block + 2);
    for (size_t j = 0; j < 32; ++j) out[b * 32 + j] = static_cast<float>(values[j]) * scale;
  }
}

void EmbedQ4_0(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<EmbeddingConstants>(args);
  float* out = reinterpret_cast<float*>(args.bindings[2]) + uint64_t{group.x} * c.cols;
  const std::byte* row = TableRow(args, group, uint64_t{c.cols} / 32 * 18, c.table_rows);
  if (row == nullptr) {
    std::memset(out, 0, c.cols * sizeof(float));
    return;
  }
  for (size_t b = 0; b < c.cols / 32; ++b) {
    const std::byte* block = row + b * 18;
    const float scale = FormatF16::One(block);
    const uint8_t* packed = reinterpret_cast<const uint8_t*>(block + 2);
    for (size_t j = 0; j < 16; ++j) {
      out[b * 32 + j] = static_cast<float>((packed[j] & 15) - 8) * scale;
      out[b * 32 + j + 16] = static_cast<float>((packed[j] >> 4) - 8) * scale;
    }
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickEmbeddingF32, EmbedF32);
ASSAY_PICK(PickEmbeddingF16, EmbedF16);
ASSAY_PICK(PickEmbeddingBF16, EmbedBF16);
ASSAY_PICK(PickEmbeddingQ8_0, EmbedQ8_0);
ASSAY_PICK(PickEmbeddingQ4_0, EmbedQ4_0);

}  // namespace assay::kernels
#endif  // HWY_ONCE
