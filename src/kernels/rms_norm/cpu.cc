#include "kernels/rms_norm/rms_norm.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/norm-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

HWY_INLINE V16 Scaled(const V16& x, const V16& factor, const float* weight) {
  const V16 scaled = Mul16(x, factor);
  return weight == nullptr ? scaled : Mul16(scaled, Load16(weight));
}

// One workgroup a row.
void RmsNormF32(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<RmsNormConstants>(args);
  const float* x = reinterpret_cast<const float*>(args.bindings[0]) + uint64_t{group.x} * c.cols;
  const float* weight =
      c.has_weight != 0 ? reinterpret_cast<const float*>(args.bindings[1]) : nullptr;
  float* out =
      reinterpret_cast<float*>(args.bindings[1 + c.has_weight]) + uint64_t{group.x} * c.cols;
  const float factor = RmsFactor(x, c.cols, c.eps);
  size_t j = 0;
  for (; j + 16 <= c.cols; j += 16) {
    Store16(Scaled(Load16(x + j), Set16(factor), weight == nullptr ? nullptr : weight + j),
            out + j);
  }
  for (; j < c.cols; ++j) {
    const float scaled = x[j] * factor;
    out[j] = weight == nullptr ? scaled : scaled * weight[j];
  }
}

void RmsNormQ8(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<RmsNormConstants>(args);
  const float* x = reinterpret_cast<const float*>(args.bindings[0]) + uint64_t{group.x} * c.cols;
  const float* weight =
      c.has_weight != 0 ? reinterpret_cast<const float*>(args.bindings[1]) : nullptr;
  const QuantizedRow out(args.bindings[1 + c.has_weight] + group.x * QuantizedRowBytes(c.cols),
                         c.cols);
  const V16 factor = Set16(RmsFactor(x, c.cols, c.eps));
  for (size_t b = 0; b < c.cols / kQ8Block; ++b) {
    const size_t j = b * kQ8Block;
    const float* block_weight = weight == nullptr ? nullptr : weight + j;
    const V16 low = Scaled(Load16(x + j), factor, block_weight);
    const V16 high =
        Scaled(Load16(x + j + 16), factor, block_weight == nullptr ? nullptr : block_weight + 16);
    QuantizeBlock(low, high, out.values + j, out.scales + b, out.sums + b);
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickRmsNormF32, RmsNormF32);
ASSAY_PICK(PickRmsNormQ8, RmsNormQ8);

}  // namespace assay::kernels
#endif  // HWY_ONCE
