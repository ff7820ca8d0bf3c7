// head_norm_rope: for each head of each row an rms norm [with weight], then the rotation by the
// row's position; head_norm and rope are either half alone. In place.
//
// Bindings: x (f32, read and write), then weight (f32 of head_dim, read) where there is one.
// The pairs are (j, j + head_dim / 2); the angle position * base^(-2j / head_dim) and its sine and
// cosine are computed in double and rounded once, so that long contexts lose nothing. Tolerance
// against float64: 4e-6 * sqrt(a^2 + b^2) + 1e-30 for a pair (a, b).
#ifndef ASSAY_KERNELS_HEAD_NORM_ROPE_HEAD_NORM_ROPE_H_
#define ASSAY_KERNELS_HEAD_NORM_ROPE_HEAD_NORM_ROPE_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct HeadNormRopeConstants {
  uint32_t cols = 0;
  uint32_t head_dim = 0;
  uint32_t first_position = 0;
  float eps = 0;
  float base = 0;
  uint32_t has_norm = 0;
  uint32_t has_weight = 0;
  uint32_t has_rope = 0;
};

Launch LaunchHeadNorm(uint32_t rows, uint32_t cols, uint32_t head_dim, float eps, bool has_weight,
                      Target target = Target::kCpu);
Launch LaunchHeadNormRope(uint32_t rows, uint32_t cols, uint32_t head_dim, float eps,
                          bool has_weight, uint32_t first_position, float base,
                          Target target = Target::kCpu);
Launch LaunchRope(uint32_t rows, uint32_t cols, uint32_t head_dim, uint32_t first_position,
                  float base, Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickHeadNormRope(Isa isa);

// In place; either part by itself.
void ReferenceHeadNorm(std::span<double> x, std::span<const double> weight, uint32_t head_dim,
                       double eps);
void ReferenceRope(std::span<double> x, uint32_t cols, uint32_t head_dim, uint32_t first_position,
                   double base);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_HEAD_NORM_ROPE_HEAD_NORM_ROPE_H_
