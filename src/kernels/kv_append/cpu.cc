#include "kernels/kv_append/kv_append.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kv_append/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// One workgroup a row.
void KvAppendF32(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<KvAppendConstants>(args);
  const uint64_t bytes = uint64_t{c.cols} * sizeof(float);
  const uint64_t offset = group.x * bytes;
  std::memcpy(args.bindings[2] + offset, args.bindings[0] + offset, bytes);
  std::memcpy(args.bindings[3] + offset, args.bindings[1] + offset, bytes);
}

HWY_INLINE void NarrowRow(const std::byte* from, std::byte* to, size_t count) {
  size_t j = 0;
#if HWY_TARGET != HWY_SSE4
  // Highway's conversion for SSE4 does not round to even.
  const hn::Rebind<hwy::float16_t, DF> d16;
  for (; j + kLanes <= count; j += kLanes) {
    const VF wide = hn::LoadU(DF(), reinterpret_cast<const float*>(from) + j);
    hn::StoreU(hn::DemoteTo(d16, wide), d16, reinterpret_cast<hwy::float16_t*>(to) + j);
  }
#endif
  for (; j < count; ++j) {
    const uint16_t half = FloatToHalf(FormatF32::One(from + j * sizeof(float)));
    std::memcpy(to + j * sizeof(half), &half, sizeof(half));
  }
}

void KvAppendF16(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<KvAppendConstants>(args);
  const uint64_t from = uint64_t{group.x} * c.cols * sizeof(float);
  const uint64_t to = uint64_t{group.x} * c.cols * sizeof(uint16_t);
  NarrowRow(args.bindings[0] + from, args.bindings[2] + to, c.cols);
  NarrowRow(args.bindings[1] + from, args.bindings[3] + to, c.cols);
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickKvAppendF32, KvAppendF32);
ASSAY_PICK(PickKvAppendF16, KvAppendF16);

}  // namespace assay::kernels
#endif  // HWY_ONCE
