// rms_norm: out = x / sqrt(mean(x^2) + eps) [* weight], row by row.
//
// Bindings: x (read), then weight (f32, read) where there is one, then out (write; f32 or kQ8).
// The squares are added in 16 lanes by fused multiply-add, folded as in simd/vec-inl.h; then each
// value is (x * factor) * weight. Tolerance against float64: 2e-6 * |result| + 1e-30 in f32; kQ8
// adds half a step of its block.
#ifndef ASSAY_KERNELS_RMS_NORM_RMS_NORM_H_
#define ASSAY_KERNELS_RMS_NORM_RMS_NORM_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct RmsNormConstants {
  uint32_t cols = 0;
  float eps = 0;
  uint32_t has_weight = 0;
};

Launch LaunchRmsNorm(uint32_t rows, uint32_t cols, float eps, bool has_weight,
                     ActivationFormat out);

gpu::CpuWorkgroupFn PickRmsNormF32(Isa isa);
gpu::CpuWorkgroupFn PickRmsNormQ8(Isa isa);

// `weight` may be empty.
void ReferenceRmsNorm(std::span<const double> x, std::span<const double> weight, uint32_t cols,
                      double eps, std::span<double> out);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_RMS_NORM_RMS_NORM_H_
