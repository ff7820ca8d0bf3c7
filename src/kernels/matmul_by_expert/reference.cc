#include <algorithm>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"

namespace assay::kernels {

void ReferenceMatMulByExpert(std::span<const double> weights, std::span<const int32_t> expert_ids,
                             std::span<const double> x, uint32_t rows, uint32_t cols,
                             uint32_t experts, uint32_t fan, std::span<double> out,
                             std::span<double> magnitude) {
  const size_t matrix = size_t{rows} * cols;
  for (size_t pair = 0; pair < expert_ids.size(); ++pair) {
    const int32_t id = expert_ids[pair];
    const auto pair_out = out.subspan(pair * rows, rows);
    const auto pair_magnitude = magnitude.subspan(pair * rows, rows);
    if (id < 0 || static_cast<uint32_t>(id) >= experts) {
      std::ranges::fill(pair_out, 0.0);
      std::ranges::fill(pair_magnitude, 0.0);
      continue;
    }
    ReferenceMatMul(weights.subspan(static_cast<size_t>(id) * matrix, matrix),
                    x.subspan(pair / fan * cols, cols), rows, cols, 1, pair_out, pair_magnitude);
  }
}

}  // namespace assay::kernels
