// Elementary functions and rounding to int8 on V16, with the same steps on every target.
//
// Exp follows Cody and Waite's reduction (Software Manual for the Elementary Functions, chapter 6)
// with the Taylor polynomial of degree 7 on [-ln 2 / 2, ln 2 / 2]; its error is below 2 units in
// the last place.
#if defined(ASSAY_KERNELS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_SIMD_MATH_INL_H_
#undef ASSAY_KERNELS_SIMD_MATH_INL_H_
#else
#define ASSAY_KERNELS_SIMD_MATH_INL_H_
#endif

#include <limits>

#include "kernels/activations.h"
#include "kernels/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// e^x: 0 below the smallest normal float's logarithm, infinity above the largest float's; NaN
// stays.
HWY_INLINE VF ExpVec(VF x) {
  const DF d;
  const VF high = hn::Set(d, 88.72283f);
  const VF low = hn::Set(d, -87.33654f);
  // Clamped so that the exponent below stays in range; the selects at the end see the true x.
  const VF clamped = hn::Max(hn::Min(x, high), low);
  const VF n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504f)));
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  VF p = hn::Set(d, 1.0f / 5040.0f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(hn::Mul(p, r), r, r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  // 2^n in two factors: n = 128 has no float of its own.
  const DI di;
  const VI whole = hn::NearestInt(n);
  const VI half = hn::ShiftRight<1>(whole);
  const VI bias = hn::Set(di, 127);
  const VF first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const VF second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  VF e = hn::Mul(hn::Mul(p, first), second);
  e = hn::IfThenZeroElse(hn::Lt(x, low), e);
  e = hn::IfThenElse(hn::Gt(x, high), hn::Inf(d), e);
  return hn::IfThenElse(hn::IsNaN(x), x, e);
}

HWY_INLINE V16 Exp16(const V16& x) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = ExpVec(x.v[i]);
  return r;
}

// x / (1 + e^-x).
HWY_INLINE V16 Silu16(const V16& x) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) {
    const VF e = ExpVec(hn::Neg(x.v[i]));
    r.v[i] = hn::Div(x.v[i], hn::Add(hn::Set(DF(), 1.0f), e));
  }
  return r;
}

// Rounds 32 values to int8 (QuantizedRow in activations.h): scale = largest magnitude / 127, values
// to the nearest, ties to even.
HWY_INLINE void QuantizeBlock(const V16& low, const V16& high, int8_t* HWY_RESTRICT values,
                              float* HWY_RESTRICT scale, int32_t* HWY_RESTRICT sum) {
  const DI di;
  // Magnitudes compare like their bit patterns, which puts infinity and NaN on top.
  VI top = hn::Zero(di);
  for (size_t i = 0; i < kVecs; ++i) {
    top = hn::Max(top, hn::BitCast(di, hn::Abs(low.v[i])));
    top = hn::Max(top, hn::BitCast(di, hn::Abs(high.v[i])));
  }
  const int32_t top_bits = hn::GetLane(hn::MaxOfLanes(di, top));
  float largest;
  std::memcpy(&largest, &top_bits, sizeof(largest));
  float block_scale = largest / 127.0f;
  float inverse = 127.0f / largest;
  if (top_bits >= 0x7F800000) {
    block_scale = std::numeric_limits<float>::quiet_NaN();
    inverse = 0.0f;
  } else if (largest < kSmallestQuantized) {
    block_scale = 0.0f;
    inverse = 0.0f;
  }
  const VF factor = hn::Set(DF(), inverse);
  const hn::Rebind<int8_t, DF> d8;
  VI total = hn::Zero(di);
  for (size_t half = 0; half < 2; ++half) {
    const V16& source = half == 0 ? low : high;
    for (size_t i = 0; i < kVecs; ++i) {
      VI rounded = hn::NearestInt(hn::Mul(source.v[i], factor));
      // A value that is not finite has no rounding of its own; its block's scale is NaN.
      if (HWY_UNLIKELY(top_bits >= 0x7F800000)) rounded = hn::Zero(di);
      total = hn::Add(total, rounded);
      hn::StoreU(hn::DemoteTo(d8, rounded), d8, values + half * 16 + i * kLanes);
    }
  }
  const int32_t block_sum = hn::GetLane(hn::SumOfLanes(di, total));
  std::memcpy(scale, &block_scale, sizeof(block_scale));
  std::memcpy(sum, &block_sum, sizeof(block_sum));
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ASSAY_KERNELS_SIMD_MATH_INL_H_
