#include <cmath>

#include "kernels/matmul/matmul.h"

namespace assay::kernels {

void ReferenceMatMul(std::span<const double> weights, std::span<const double> x, uint32_t rows,
                     uint32_t cols, uint32_t tokens, std::span<double> out,
                     std::span<double> magnitude) {
  for (size_t i = 0; i < tokens; ++i) {
    for (size_t r = 0; r < rows; ++r) {
      double sum = 0;
      double absolute = 0;
      for (size_t c = 0; c < cols; ++c) {
        const double product = weights[r * cols + c] * x[i * cols + c];
        sum += product;
        absolute += std::abs(product);
      }
      out[i * rows + r] = sum;
      magnitude[i * rows + r] = absolute;
    }
  }
}

}  // namespace assay::kernels
