#include <cmath>

#include "kernels/silu_mul/silu_mul.h"

namespace assay::kernels {

void ReferenceSiluMul(std::span<const double> gate, std::span<const double> up,
                      std::span<double> out) {
  for (size_t i = 0; i < gate.size(); ++i) out[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
}

}  // namespace assay::kernels
