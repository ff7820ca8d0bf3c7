// V16: sixteen float lanes, whatever the width of the target's registers. Every reduction folds
// lane i with lane i + 8, then + 4, + 2, + 1, so that AVX2, AVX-512 and NEON give the same bits.
// SSE4 has no fused multiply-add and rounds twice where they round once.
#if defined(ASSAY_KERNELS_SIMD_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASSAY_KERNELS_SIMD_VEC_INL_H_
#undef ASSAY_KERNELS_SIMD_VEC_INL_H_
#else
#define ASSAY_KERNELS_SIMD_VEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "kernels/half.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
inline constexpr size_t kLanes = HWY_MIN(HWY_LANES(float), 16);
inline constexpr size_t kVecs = 16 / kLanes;

struct V16 {
  VF v[kVecs];
};

HWY_INLINE V16 Set16(float value) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Set(DF(), value);
  return r;
}
HWY_INLINE V16 Load16(const float* HWY_RESTRICT p) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::LoadU(DF(), p + i * kLanes);
  return r;
}
HWY_INLINE void Store16(const V16& a, float* HWY_RESTRICT p) {
  for (size_t i = 0; i < kVecs; ++i) hn::StoreU(a.v[i], DF(), p + i * kLanes);
}
HWY_INLINE V16 Add16(const V16& a, const V16& b) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Add(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE V16 Sub16(const V16& a, const V16& b) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Sub(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE V16 Mul16(const V16& a, const V16& b) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Mul(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE V16 Div16(const V16& a, const V16& b) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Div(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE V16 Max16(const V16& a, const V16& b) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Max(a.v[i], b.v[i]);
  return r;
}
// a * b + c, rounded once where the target can.
HWY_INLINE V16 MulAdd16(const V16& a, const V16& b, const V16& c) {
  V16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return r;
}

// Keeps a value that is used several times in its registers. Where an instruction can take its
// operand from memory, compilers load such a value again for each use, and loops that are bound by
// loads get slower.
HWY_INLINE V16 InRegister16(V16 a) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(a.v[0].raw));
#endif
  return a;
}

// The first `count` floats, the rest of the lanes `fill`.
HWY_INLINE V16 LoadPart16(const float* p, size_t count, float fill = 0.0f) {
  HWY_ALIGN float lanes[16];
  for (float& lane : lanes) lane = fill;
  std::memcpy(lanes, p, count * sizeof(float));
  return Load16(lanes);
}
HWY_INLINE void StorePart16(const V16& a, float* p, size_t count) {
  HWY_ALIGN float lanes[16];
  Store16(a, lanes);
  std::memcpy(p, lanes, count * sizeof(float));
}

using D4 = hn::CappedTag<float, 4>;
using F4 = hn::Vec<D4>;

// Lanes i, i + 4, i + 8 and i + 12 in the fixed order.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE F4 Fold4(const V16& a) {
  const hn::Half<DF> d8;
  const auto eight = hn::Add(hn::LowerHalf(d8, a.v[0]), hn::UpperHalf(d8, a.v[0]));
  return hn::Add(hn::LowerHalf(D4(), eight), hn::UpperHalf(D4(), eight));
}
HWY_INLINE F4 FoldMax4(const V16& a) {
  const hn::Half<DF> d8;
  const auto eight = hn::Max(hn::LowerHalf(d8, a.v[0]), hn::UpperHalf(d8, a.v[0]));
  return hn::Max(hn::LowerHalf(D4(), eight), hn::UpperHalf(D4(), eight));
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE F4 Fold4(const V16& a) {
  const auto eight = hn::Add(a.v[0], a.v[1]);
  return hn::Add(hn::LowerHalf(D4(), eight), hn::UpperHalf(D4(), eight));
}
HWY_INLINE F4 FoldMax4(const V16& a) {
  const auto eight = hn::Max(a.v[0], a.v[1]);
  return hn::Max(hn::LowerHalf(D4(), eight), hn::UpperHalf(D4(), eight));
}
#else
HWY_INLINE F4 Fold4(const V16& a) {
  return hn::Add(hn::Add(a.v[0], a.v[2]), hn::Add(a.v[1], a.v[3]));
}
HWY_INLINE F4 FoldMax4(const V16& a) {
  return hn::Max(hn::Max(a.v[0], a.v[2]), hn::Max(a.v[1], a.v[3]));
}
#endif

HWY_INLINE float Sum16(const V16& a) {
  const F4 four = Fold4(a);
  const F4 two = hn::Add(four, hn::Shuffle1032(four));
  return hn::GetLane(hn::Add(two, hn::Shuffle2301(two)));
}
HWY_INLINE float MaxLane16(const V16& a) {
  const F4 four = FoldMax4(a);
  const F4 two = hn::Max(four, hn::Shuffle1032(four));
  return hn::GetLane(hn::Max(two, hn::Shuffle2301(two)));
}

// --- Weight and cache formats: sixteen consecutive values at any address.

struct FormatF32 {
  static constexpr size_t kBytes = 4;
  static HWY_INLINE V16 Load(const std::byte* p) {
    return Load16(reinterpret_cast<const float*>(p));
  }
  static HWY_INLINE float One(const std::byte* p) {
    float value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }
};

struct FormatBF16 {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE V16 Load(const std::byte* p) {
    const hn::RebindToUnsigned<DF> du;
    const hn::Rebind<uint16_t, DF> d16;
    V16 r;
    for (size_t i = 0; i < kVecs; ++i) {
      const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p) + i * kLanes);
      r.v[i] = hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
    }
    return r;
  }
  static HWY_INLINE float One(const std::byte* p) {
    uint16_t value;
    std::memcpy(&value, p, sizeof(value));
    return BFloatToFloat(value);
  }
};

struct FormatF16 {
  static constexpr size_t kBytes = 2;
  static HWY_INLINE V16 Load(const std::byte* p) {
    V16 r;
#if HWY_TARGET == HWY_SSE4
    // Highway's own conversion for this target does not know infinities and NaN.
    const hn::RebindToUnsigned<DF> du;
    const hn::Rebind<uint16_t, DF> d16;
    for (size_t i = 0; i < kVecs; ++i) {
      const auto half =
          hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p) + i * kLanes));
      const auto magnitude = hn::And(half, hn::Set(du, 0x7FFFu));
      const auto sign = hn::ShiftLeft<16>(hn::AndNot(hn::Set(du, 0x7FFFu), half));
      const auto shifted = hn::ShiftLeft<13>(magnitude);
      const auto finite =
          hn::BitCast(du, hn::Mul(hn::BitCast(DF(), shifted), hn::Set(DF(), 0x1p112f)));
      const auto special = hn::Or(hn::Set(du, 0x7F800000u), shifted);
      const auto is_special = hn::Gt(hn::BitCast(DI(), magnitude), hn::Set(DI(), 0x7BFF));
      const auto bits = hn::IfThenElse(hn::RebindMask(du, is_special), special, finite);
      r.v[i] = hn::BitCast(DF(), hn::Or(bits, sign));
    }
#else
    const hn::Rebind<hwy::float16_t, DF> d16;
    for (size_t i = 0; i < kVecs; ++i) {
      r.v[i] = hn::PromoteTo(
          DF(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p) + i * kLanes));
    }
#endif
    return r;
  }
  static HWY_INLINE float One(const std::byte* p) {
    uint16_t value;
    std::memcpy(&value, p, sizeof(value));
    return HalfToFloat(value);
  }
};

// The first `count` values, the other lanes 0.
template <class Format>
HWY_INLINE V16 LoadFormatPart(const std::byte* p, size_t count) {
  HWY_ALIGN float lanes[16] = {};
  for (size_t i = 0; i < count; ++i) lanes[i] = Format::One(p + i * Format::kBytes);
  return Load16(lanes);
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ASSAY_KERNELS_SIMD_VEC_INL_H_
