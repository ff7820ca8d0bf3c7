// Scalar conversions between float and the 16-bit formats; exact one way, round to nearest even the
// other.
#ifndef ASSAY_KERNELS_HALF_H_
#define ASSAY_KERNELS_HALF_H_

#include <bit>
#include <cstdint>

namespace assay::kernels {

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7FFFu;
  // 2^112 moves the exponent from a bias of 15 to one of 127, subnormals included.
  uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  if (magnitude >= 0x7C00u) bits = 0x7F800000u | (magnitude & 0x3FFu) << 13;
  return std::bit_cast<float>(bits | sign);
}

inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x1FFu));
  }
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {
    // The addition leaves the rounded subnormal in the low bits of the sum.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000u));
  }
  const uint32_t odd = magnitude >> 13 & 1u;
  return static_cast<uint16_t>(sign | (magnitude - 0x38000000u + 0xFFFu + odd) >> 13);
}

inline float BFloatToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_HALF_H_
