#include "kernels/elementwise/elementwise.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

struct AddOp {
  static HWY_INLINE V16 Apply(const V16& a, const V16& b) { return Add16(a, b); }
};
struct MulOp {
  static HWY_INLINE V16 Apply(const V16& a, const V16& b) { return Mul16(a, b); }
};

template <class Op>
HWY_INLINE void Elementwise(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<ElementwiseConstants>(args);
  const float* a = reinterpret_cast<const float*>(args.bindings[0]);
  const float* b = reinterpret_cast<const float*>(args.bindings[1]);
  float* out = reinterpret_cast<float*>(args.bindings[2]);
  size_t i = size_t{group.x} * c.per_group;
  const size_t end = HWY_MIN(size_t{c.count}, i + c.per_group);
  for (; i + 16 <= end; i += 16) Store16(Op::Apply(Load16(a + i), Load16(b + i)), out + i);
  if (i < end) {
    StorePart16(Op::Apply(LoadPart16(a + i, end - i), LoadPart16(b + i, end - i)), out + i,
                end - i);
  }
}

void Add(const gpu::CpuKernelArgs& args, Extent3 group) { Elementwise<AddOp>(args, group); }
void Mul(const gpu::CpuKernelArgs& args, Extent3 group) { Elementwise<MulOp>(args, group); }

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickAdd, Add);
ASSAY_PICK(PickMul, Mul);

}  // namespace assay::kernels
#endif  // HWY_ONCE
