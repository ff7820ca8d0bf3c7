// The layout of kQ8 activations: a row holds its int8 values, then a float scale for each block of
// 32 of them, then the int32 sum of each block's values (which lets weights with an offset be
// multiplied as they are stored). Value j stands for values[j] * scales[j / 32].
//
// A block whose largest magnitude is below kSmallestQuantized is all zero. A block that holds an
// infinity or a NaN has scale NaN and values 0, so that every product with it is NaN.
#ifndef ASSAY_KERNELS_ACTIVATIONS_H_
#define ASSAY_KERNELS_ACTIVATIONS_H_

#include <cstddef>
#include <cstdint>

namespace assay::kernels {

inline constexpr uint32_t kQ8Block = 32;
inline constexpr float kSmallestQuantized = 0x1p-100f;

constexpr uint64_t QuantizedRowBytes(uint64_t cols) {
  return cols + cols / kQ8Block * (sizeof(float) + sizeof(int32_t));
}

// The three parts of a row that starts at `row`, which is 4-byte aligned.
struct QuantizedRow {
  QuantizedRow(std::byte* row, uint64_t cols)
      : values(reinterpret_cast<int8_t*>(row)),
        scales(reinterpret_cast<float*>(row + cols)),
        sums(reinterpret_cast<int32_t*>(row + cols + cols / kQ8Block * sizeof(float))) {}
  int8_t* values;
  float* scales;
  int32_t* sums;
};
struct ConstQuantizedRow {
  ConstQuantizedRow() = default;
  ConstQuantizedRow(const std::byte* row, uint64_t cols)
      : values(reinterpret_cast<const int8_t*>(row)),
        scales(reinterpret_cast<const float*>(row + cols)),
        sums(reinterpret_cast<const int32_t*>(row + cols + cols / kQ8Block * sizeof(float))) {}
  const int8_t* values = nullptr;
  const float* scales = nullptr;
  const int32_t* sums = nullptr;
};

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_ACTIVATIONS_H_
