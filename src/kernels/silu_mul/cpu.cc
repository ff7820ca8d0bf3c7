#include "kernels/silu_mul/silu_mul.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/silu_mul/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// Group (x, y): columns x * cols_per_group... of row y.
void SiluMulF32(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<SiluMulConstants>(args);
  const uint64_t row = uint64_t{group.y} * c.cols;
  const float* gate = reinterpret_cast<const float*>(args.bindings[0]) + row;
  const float* up = reinterpret_cast<const float*>(args.bindings[1]) + row;
  float* out = reinterpret_cast<float*>(args.bindings[2]) + row;
  size_t j = group.x * c.cols_per_group;
  const size_t end = HWY_MIN(size_t{c.cols}, j + c.cols_per_group);
  for (; j + 16 <= end; j += 16) {
    Store16(Mul16(Silu16(Load16(gate + j)), Load16(up + j)), out + j);
  }
  if (j < end) {
    const V16 product = Mul16(Silu16(LoadPart16(gate + j, end - j)), LoadPart16(up + j, end - j));
    StorePart16(product, out + j, end - j);
  }
}

void SiluMulQ8(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<SiluMulConstants>(args);
  const uint64_t row = uint64_t{group.y} * c.cols;
  const float* gate = reinterpret_cast<const float*>(args.bindings[0]) + row;
  const float* up = reinterpret_cast<const float*>(args.bindings[1]) + row;
  const QuantizedRow out(args.bindings[2] + group.y * QuantizedRowBytes(c.cols), c.cols);
  const size_t begin = group.x * c.cols_per_group;
  const size_t end = HWY_MIN(size_t{c.cols}, begin + c.cols_per_group);
  for (size_t j = begin; j < end; j += kQ8Block) {
    const size_t b = j / kQ8Block;
    const V16 low = Mul16(Silu16(Load16(gate + j)), Load16(up + j));
    const V16 high = Mul16(Silu16(Load16(gate + j + 16)), Load16(up + j + 16));
    QuantizeBlock(low, high, out.values + j, out.scales + b, out.sums + b);
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickSiluMulF32, SiluMulF32);
ASSAY_PICK(PickSiluMulQ8, SiluMulQ8);

}  // namespace assay::kernels
#endif  // HWY_ONCE
