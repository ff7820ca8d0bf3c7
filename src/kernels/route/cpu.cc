#include "kernels/route/route.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/route/cpu.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"
#include "kernels/simd/pick.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {

// One workgroup a token. The row's probabilities lie in shared memory, padded to whole vectors.
void Route(const gpu::CpuKernelArgs& args, Extent3 group) {
  const auto c = LoadConstants<RouteConstants>(args);
  const float* logits =
      reinterpret_cast<const float*>(args.bindings[0]) + uint64_t{group.x} * c.experts;
  int32_t* ids = reinterpret_cast<int32_t*>(args.bindings[1]) + uint64_t{group.x} * c.used;
  float* weights = reinterpret_cast<float*>(args.bindings[2]) + uint64_t{group.x} * c.used;
  float* p = reinterpret_cast<float*>(args.shared.data());
  constexpr float kNone = -std::numeric_limits<float>::infinity();

  V16 top = Set16(kNone);
  for (size_t i = 0; i < c.experts; i += 16) {
    const V16 v = LoadPart16(logits + i, HWY_MIN(size_t{16}, c.experts - i), kNone);
    Store16(v, p + i);
    top = Max16(top, v);
  }
  const V16 largest = Set16(MaxLane16(top));
  V16 sums = Set16(0.0f);
  for (size_t i = 0; i < c.experts; i += 16) {
    const V16 e = Exp16(Sub16(Load16(p + i), largest));
    Store16(e, p + i);
    sums = Add16(sums, e);
  }
  const V16 sum = Set16(Sum16(sums));
  for (size_t i = 0; i < c.experts; i += 16) Store16(Div16(Load16(p + i), sum), p + i);

  float chosen = 0.0f;
  for (uint32_t j = 0; j < c.used; ++j) {
    // Probabilities are at least 0 and chosen ones become -1. Where all that is left is NaN, the
    // lowest id that is not yet taken.
    uint32_t best = c.experts;
    float best_p = -0.5f;
    for (uint32_t i = 0; i < c.experts; ++i) {
      if (p[i] > best_p) {
        best_p = p[i];
        best = i;
      }
    }
    for (uint32_t i = 0; best == c.experts; ++i) {
      if (p[i] != -1.0f) best = i;
    }
    ids[j] = static_cast<int32_t>(best);
    weights[j] = p[best];
    chosen = j == 0 ? p[best] : chosen + p[best];
    p[best] = -1.0f;
  }
  if (c.normalise != 0) {
    for (uint32_t j = 0; j < c.used; ++j) weights[j] /= chosen;
  }
}

}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::kernels {

ASSAY_PICK(PickRoute, Route);

}  // namespace assay::kernels
#endif  // HWY_ONCE
