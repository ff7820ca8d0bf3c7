// The root mean square of a row, shared by rms_norm and head_norm.
#if defined(ASSAY_KERNELS_SIMD_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_SIMD_NORM_INL_H_
#undef ASSAY_KERNELS_SIMD_NORM_INL_H_
#else
#define ASSAY_KERNELS_SIMD_NORM_INL_H_
#endif

#include <cmath>

#include "kernels/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// 1 / sqrt(mean(x^2) + eps).
HWY_INLINE float RmsFactor(const float* x, size_t count, float eps) {
  V16 squares = Set16(0.0f);
  size_t c = 0;
  for (; c + 16 <= count; c += 16) {
    const V16 v = Load16(x + c);
    squares = MulAdd16(v, v, squares);
  }
  if (c < count) {
    const V16 v = LoadPart16(x + c, count - c);
    squares = MulAdd16(v, v, squares);
  }
  return 1.0f / std::sqrt(Sum16(squares) / static_cast<float>(count) + eps);
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ASSAY_KERNELS_SIMD_NORM_INL_H_
