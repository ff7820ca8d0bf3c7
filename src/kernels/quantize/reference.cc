#include "kernels/activations.h"
#include "kernels/quantize/quantize.h"

namespace assay::kernels {

void DequantizeActivations(const std::byte* rows, uint32_t row_count, uint32_t cols,
                           std::span<double> out) {
  for (size_t row = 0; row < row_count; ++row) {
    const ConstQuantizedRow q(rows + row * QuantizedRowBytes(cols), cols);
    for (size_t c = 0; c < cols; ++c) {
      out[row * cols + c] = static_cast<double>(q.values[c]) * q.scales[c / kQ8Block];
    }
  }
}

}  // namespace assay::kernels
