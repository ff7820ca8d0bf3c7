#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/head_norm_rope/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/norm-inl.h"
#include "kernels/simd/pick.h"
#include "kernels/simd/trig-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// cos and sin of the angles of one position, head_dim / 2 each.
HWY_INLINE void FillRotation(uint32_t position, uint32_t head_dim, float base, float* cosines,
                             float* sines) {
  const DD d;
  const size_t half = head_dim / 2;
  // base^(-2j / head_dim) = e^(j * step).
  const VD step = hn::Set(d, -2.0 * std::log(static_cast<double>(base)) / head_dim);
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN double sine_lanes[8];
  HWY_ALIGN double cosine_lanes[8];
  for (size_t j = 0; j < half; j += lanes) {
    const VD index = hn::Add(hn::Set(d, static_cast<double>(j)), hn::Iota(d, 0.0));
    const VD angle =
        hn::Mul(hn::Set(d, static_cast<double>(position)), ExpDouble(hn::Mul(index, step)));
    VD sine;
    VD cosine;
    SinCosDouble(angle, &sine, &cosine);
    hn::Store(sine, d, sine_lanes);
    hn::Store(cosine, d, cosine_lanes);
    for (size_t i = 0; i < HWY_MIN(lanes, half - j); ++i) {
      cosines[j + i] = static_cast<float>(cosine_lanes[i]);
      sines[j + i] = static_cast<float>(sine_lanes[i]);
    }
  }
}

HWY_INLINE void NormHead(float* x, const float* weight, uint32_t head_dim, float eps) {
  const float factor = RmsFactor(x, head_dim, eps);
  size_t j = 0;
  for (; j + 16 <= head_dim; j += 16) {
    V16 v = Mul16(Load16(x + j), Set16(factor));
    if (weight != nullptr) v = Mul16(v, Load16(weight + j));
    Store16(v, x + j);
  }
  for (; j < head_dim; ++j) {
    x[j] *= factor;
    if (weight != nullptr) x[j] *= weight[j];
  }
}

HWY_INLINE void RotateHead(float* x, const float* cosines, const float* sines, uint32_t head_dim) {
  const size_t half = head_dim / 2;
  size_t j = 0;
  for (; j + 16 <= half; j += 16) {
    const V16 a = Load16(x + j);
    const V16 b = Load16(x + j + half);
    const V16 c = Load16(cosines + j);
    const V16 s = Load16(sines + j);
    Store16(Sub16(Mul16(a, c), Mul16(b, s)), x + j);
    Store16(Add16(Mul16(a, s), Mul16(b, c)), x + j + half);
  }
  for (; j < half; ++j) {
    const float a = x[j];
    const float b = x[j + half];
    x[j] = a * cosines[j] - b * sines[j];
    x[j + half] = a * sines[j] + b * cosines[j];
  }
}

// One workgroup a row.
void HeadNormRope(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<HeadNormRopeConstants>(args);
  float* row = reinterpret_cast<float*>(args.bindings[0]) + uint64_t{group.x} * c.cols;
  const float* weight =
      c.has_weight != 0 ? reinterpret_cast<const float*>(args.bindings[1]) : nullptr;
  float* cosines = reinterpret_cast<float*>(args.shared.data());
  float* sines = cosines + c.head_dim / 2;
  if (c.has_rope != 0) {
    FillRotation(c.first_position + group.x, c.head_dim, c.base, cosines, sines);
  }
  for (float* head = row; head != row + c.cols; head += c.head_dim) {
    if (c.has_norm != 0) NormHead(head, weight, c.head_dim, c.eps);
    if (c.has_rope != 0) RotateHead(head, cosines, sines, c.head_dim);
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickHeadNormRope, HeadNormRope);

}  // namespace assay::kernels
#endif  // HWY_ONCE
