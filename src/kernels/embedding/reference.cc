#include <algorithm>

#include "kernels/embedding/embedding.h"

namespace assay::kernels {

void ReferenceEmbedding(std::span<const double> table, std::span<const int32_t> ids, uint32_t cols,
                        std::span<double> out) {
  const size_t rows = table.size() / cols;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool known = ids[i] >= 0 && static_cast<size_t>(ids[i]) < rows;
    for (size_t c = 0; c < cols; ++c) {
      out[i * cols + c] = known ? table[static_cast<size_t>(ids[i]) * cols + c] : 0.0;
    }
  }
}

}  // namespace assay::kernels
