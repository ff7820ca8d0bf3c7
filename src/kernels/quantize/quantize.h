// quantize: x rounded into kQ8, or copied as f32.
//
// Bindings: x (f32, read), out (write). The rounding is that of activations.h; its error is at most
// half a step, 0.5 * scale * (1 + 1e-6), of the value's block.
#ifndef ASSAY_KERNELS_QUANTIZE_QUANTIZE_H_
#define ASSAY_KERNELS_QUANTIZE_QUANTIZE_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct QuantizeConstants {
  uint32_t cols = 0;
  uint32_t cols_per_group = 0;
};

Launch LaunchQuantize(uint32_t rows, uint32_t cols, ActivationFormat out);

gpu::CpuWorkgroupFn PickQuantizeF32(Isa isa);
gpu::CpuWorkgroupFn PickQuantizeQ8(Isa isa);

// The values that a quantised row of `cols` values stands for.
void DequantizeActivations(const std::byte* rows, uint32_t row_count, uint32_t cols,
                           std::span<double> out);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_QUANTIZE_QUANTIZE_H_
