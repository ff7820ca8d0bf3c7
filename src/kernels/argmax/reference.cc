#include <cmath>

#include "kernels/argmax/argmax.h"

namespace assay::kernels {

int32_t ReferenceArgMax(std::span<const float> row) {
  int32_t best = -1;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) continue;
    if (best < 0 || row[i] > row[static_cast<size_t>(best)]) best = static_cast<int32_t>(i);
  }
  return best;
}

}  // namespace assay::kernels
