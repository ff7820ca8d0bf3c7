#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/attention.h"

namespace assay::kernels {

void ReferenceAttention(std::span<const double> q, std::span<const double> k_cache,
                        std::span<const double> v_cache, uint32_t heads, uint32_t kv_heads,
                        uint32_t head_dim, uint32_t first_position, double scale,
                        std::span<double> out) {
  const size_t kv_dim = size_t{kv_heads} * head_dim;
  const size_t tokens = q.size() / heads / head_dim;
  for (size_t i = 0; i < tokens; ++i) {
    const size_t seen = first_position + i + 1;
    for (size_t h = 0; h < heads; ++h) {
      const size_t kv = h / (heads / kv_heads) * head_dim;
      const double* query = q.data() + (i * heads + h) * head_dim;
      double* result = out.data() + (i * heads + h) * head_dim;
      std::vector<double> scores(seen, 0.0);
      for (size_t p = 0; p < seen; ++p) {
        for (size_t j = 0; j < head_dim; ++j) scores[p] += query[j] * k_cache[p * kv_dim + kv + j];
        scores[p] *= scale;
      }
      const double top = *std::ranges::max_element(scores);
      double sum = 0;
      std::fill(result, result + head_dim, 0.0);
      for (size_t p = 0; p < seen; ++p) {
        const double weight = std::exp(scores[p] - top);
        sum += weight;
        for (size_t j = 0; j < head_dim; ++j) result[j] += weight * v_cache[p * kv_dim + kv + j];
      }
      for (size_t j = 0; j < head_dim; ++j) result[j] /= sum;
    }
  }
}

}  // namespace assay::kernels
