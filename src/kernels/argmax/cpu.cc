#include "kernels/argmax/argmax.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/argmax/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// The largest value of [0, count), at least -infinity; NaN is passed over.
HWY_INLINE float Largest(const float* x, size_t count) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const VF none = hn::Set(DF(), kNone);
  V16 top = Set16(kNone);
  for (size_t i = 0; i < count; i += 16) {
    V16 v = count - i >= 16 ? Load16(x + i) : LoadPart16(x + i, count - i, kNone);
    for (size_t k = 0; k < kVecs; ++k) v.v[k] = hn::IfThenElse(hn::IsNaN(v.v[k]), none, v.v[k]);
    top = Max16(top, v);
  }
  return MaxLane16(top);
}

// One workgroup a row. The column is looked for only in the first piece that holds the largest
// value.
void ArgMax(const gpu::CpuKernelArgs& args, Extent3 group) {
  constexpr size_t kPiece = 2048;
  const auto c = LoadConstants<ArgMaxConstants>(args);
  const float* x = reinterpret_cast<const float*>(args.bindings[0]) + uint64_t{group.x} * c.cols;
  float best = 0.0f;
  size_t best_begin = 0;
  bool any = false;
  for (size_t begin = 0; begin < c.cols; begin += kPiece) {
    const float largest = Largest(x + begin, HWY_MIN(kPiece, c.cols - begin));
    if (!any || largest > best) {
      // A piece of NaN alone looks like one of -infinity alone; the search below tells them apart.
      best = largest;
      best_begin = begin;
      any = true;
    }
  }
  size_t column = best_begin;
  while (column < c.cols && !(x[column] == best)) ++column;
  const int32_t result = column < c.cols ? static_cast<int32_t>(column) : -1;
  std::memcpy(args.bindings[1] + uint64_t{group.x} * sizeof(result), &result, sizeof(result));
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickArgMax, ArgMax);

}  // namespace assay::kernels
#endif  // HWY_ONCE
