#include "kernels/quantize/quantize.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// Group (x, y): columns x * cols_per_group... of row y.
void CopyF32(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<QuantizeConstants>(args);
  const uint32_t begin = group.x * c.cols_per_group;
  const uint32_t count = HWY_MIN(c.cols_per_group, c.cols - begin);
  const uint64_t offset = (uint64_t{group.y} * c.cols + begin) * sizeof(float);
  std::memcpy(args.bindings[1] + offset, args.bindings[0] + offset, count * sizeof(float));
}

void QuantizeQ8(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<QuantizeConstants>(args);
  const float* x = reinterpret_cast<const float*>(args.bindings[0]) + uint64_t{group.y} * c.cols;
  const QuantizedRow out(args.bindings[1] + group.y * QuantizedRowBytes(c.cols), c.cols);
  const uint32_t begin = group.x * c.cols_per_group;
  const uint32_t end = HWY_MIN(c.cols, begin + c.cols_per_group);
  for (size_t j = begin; j < end; j += kQ8Block) {
    const size_t b = j / kQ8Block;
    QuantizeBlock(Load16(x + j), Load16(x + j + 16), out.values + j, out.scales + b, out.sums + b);
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickQuantizeF32, CopyF32);
ASSAY_PICK(PickQuantizeQ8, QuantizeQ8);

}  // namespace assay::kernels
#endif  // HWY_ONCE
