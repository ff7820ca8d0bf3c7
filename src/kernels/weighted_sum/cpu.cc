#include "kernels/simd/targets.h"
#include "kernels/weighted_sum/weighted_sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/weighted_sum/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// Sixteen columns, or the first `count` of them.
HWY_INLINE V16 LoadSome(const float* p, size_t count) {
  return count == 16 ? Load16(p) : LoadPart16(p, count);
}

// Group (x, y): columns x * cols_per_group... of token y.
void WeightedSum(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<WeightedSumConstants>(args);
  const uint64_t token = group.y;
  const float* x = reinterpret_cast<const float*>(args.bindings[0]) + token * c.used * c.cols;
  const float* weights = reinterpret_cast<const float*>(args.bindings[1]) + token * c.used;
  float* out = reinterpret_cast<float*>(args.bindings[2]) + token * c.cols;
  const float* residual = c.add_residual != 0
                              ? reinterpret_cast<const float*>(args.bindings[3]) + token * c.cols
                              : nullptr;
  const size_t begin = size_t{group.x} * c.cols_per_group;
  const size_t end = HWY_MIN(size_t{c.cols}, begin + c.cols_per_group);
  for (size_t i = begin; i < end; i += 16) {
    const size_t count = HWY_MIN(size_t{16}, end - i);
    V16 sum = Mul16(Set16(weights[0]), LoadSome(x + i, count));
    for (size_t j = 1; j < c.used; ++j) {
      sum = MulAdd16(Set16(weights[j]), LoadSome(x + j * c.cols + i, count), sum);
    }
    if (residual != nullptr) sum = Add16(sum, LoadSome(residual + i, count));
    if (count == 16) {
      Store16(sum, out + i);
    } else {
      StorePart16(sum, out + i, count);
    }
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickWeightedSum, WeightedSum);

}  // namespace assay::kernels
#endif  // HWY_ONCE
