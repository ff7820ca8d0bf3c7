#include <cmath>

#include "kernels/head_norm_rope/head_norm_rope.h"

namespace assay::kernels {

void ReferenceHeadNorm(std::span<double> x, std::span<const double> weight, uint32_t head_dim,
                       double eps) {
  for (size_t head = 0; head < x.size() / head_dim; ++head) {
    double* v = x.data() + head * head_dim;
    double squares = 0;
    for (size_t j = 0; j < head_dim; ++j) squares += v[j] * v[j];
    const double factor = 1.0 / std::sqrt(squares / head_dim + eps);
    for (size_t j = 0; j < head_dim; ++j) v[j] *= factor * (weight.empty() ? 1.0 : weight[j]);
  }
}

void ReferenceRope(std::span<double> x, uint32_t cols, uint32_t head_dim, uint32_t first_position,
                   double base) {
  const size_t half = head_dim / 2;
  for (size_t head = 0; head < x.size() / head_dim; ++head) {
    double* v = x.data() + head * head_dim;
    const size_t row = head * head_dim / cols;
    const double position = first_position + static_cast<double>(row);
    for (size_t j = 0; j < half; ++j) {
      const double angle = position * std::pow(base, -2.0 * static_cast<double>(j) / head_dim);
      const double a = v[j];
      const double b = v[j + half];
      v[j] = a * std::cos(angle) - b * std::sin(angle);
      v[j + half] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
}

}  // namespace assay::kernels
