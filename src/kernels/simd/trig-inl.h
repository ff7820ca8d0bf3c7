// Sine, cosine and powers in double, for rotary positions.
//
// Cody and Waite's reduction (Software Manual for the Elementary Functions, chapters 6 and 8) and
// Taylor polynomials; the error is below 1e-15 for exponents of magnitude below 700 and angles
// below 1e7.
#if defined(ASSAY_KERNELS_SIMD_TRIG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_SIMD_TRIG_INL_H_
#undef ASSAY_KERNELS_SIMD_TRIG_INL_H_
#else
#define ASSAY_KERNELS_SIMD_TRIG_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DD = hn::CappedTag<double, 8>;
using VD = hn::Vec<DD>;

// Horner's rule, highest power first.
template <size_t kCount>
HWY_INLINE VD Polynomial(const double (&coefficients)[kCount], VD x) {
  const DD d;
  VD sum = hn::Set(d, coefficients[0]);
  for (size_t i = 1; i < kCount; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

HWY_INLINE VD ExpDouble(VD x) {
  constexpr double kTaylor[] = {1.0 / 6227020800.0,
                                1.0 / 479001600.0,
                                1.0 / 39916800.0,
                                1.0 / 3628800.0,
                                1.0 / 362880.0,
                                1.0 / 40320.0,
                                1.0 / 5040.0,
                                1.0 / 720.0,
                                1.0 / 120.0,
                                1.0 / 24.0,
                                1.0 / 6.0,
                                0.5,
                                1.0,
                                1.0};
  const DD d;
  const hn::RebindToSigned<DD> di;
  const VD n = hn::Round(hn::Mul(x, hn::Set(d, 1.4426950408889634)));
  VD r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e42fee00000p-1), x);
  r = hn::NegMulAdd(n, hn::Set(d, 0x1.a39ef35793c76p-33), r);
  // n + 1.5 * 2^52 holds n in its low mantissa bits, which saves a conversion that AVX2 lacks.
  const auto whole = hn::BitCast(di, hn::Add(n, hn::Set(d, 0x1.8p52)));
  const auto exponent = hn::ShiftLeft<52>(hn::Add(whole, hn::Set(di, int64_t{1023})));
  return hn::Mul(Polynomial(kTaylor, r), hn::BitCast(d, exponent));
}

HWY_INLINE void SinCosDouble(VD angle, VD* sine, VD* cosine) {
  constexpr double kSine[] = {
      -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
      -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0,        1.0};
  constexpr double kCosine[] = {1.0 / 20922789888000.0,
                                -1.0 / 87178291200.0,
                                1.0 / 479001600.0,
                                -1.0 / 3628800.0,
                                1.0 / 40320.0,
                                -1.0 / 720.0,
                                1.0 / 24.0,
                                -0.5,
                                1.0};
  const DD d;
  const hn::RebindToSigned<DD> di;
  const VD quarter = hn::Round(hn::Mul(angle, hn::Set(d, 0.63661977236758138)));
  // pi / 2 in three parts; the first two have zeros below, so that their products with `quarter`
  // are exact.
  VD r = hn::NegMulAdd(quarter, hn::Set(d, 0x1.921fb54400000p0), angle);
  r = hn::NegMulAdd(quarter, hn::Set(d, 0x1.0b4611a600000p-34), r);
  r = hn::NegMulAdd(quarter, hn::Set(d, 0x1.3198a2e037073p-69), r);
  const VD square = hn::Mul(r, r);
  const VD s = hn::Mul(Polynomial(kSine, square), r);
  const VD c = Polynomial(kCosine, square);
  const auto whole = hn::BitCast(di, hn::Add(quarter, hn::Set(d, 0x1.8p52)));
  const auto one = hn::Set(di, int64_t{1});
  const auto two = hn::Set(di, int64_t{2});
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(whole, one), one));
  // Odd quarters swap the two; sine is negative in quarters 2 and 3, cosine in 1 and 2.
  const VD sine_sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(whole, two)));
  const VD cosine_sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(hn::Add(whole, one), two)));
  *sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  *cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ASSAY_KERNELS_SIMD_TRIG_INL_H_
