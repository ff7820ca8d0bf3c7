#include <cmath>

#include "kernels/rms_norm/rms_norm.h"

namespace assay::kernels {

void ReferenceRmsNorm(std::span<const double> x, std::span<const double> weight, uint32_t cols,
                      double eps, std::span<double> out) {
  for (size_t row = 0; row < x.size() / cols; ++row) {
    double squares = 0;
    for (size_t c = 0; c < cols; ++c) squares += x[row * cols + c] * x[row * cols + c];
    const double factor = 1.0 / std::sqrt(squares / cols + eps);
    for (size_t c = 0; c < cols; ++c) {
      out[row * cols + c] = x[row * cols + c] * factor * (weight.empty() ? 1.0 : weight[c]);
    }
  }
}

}  // namespace assay::kernels
