// silu_mul: out = gate / (1 + e^-gate) * up.
//
// Bindings: gate, up (f32, read), out (write; f32 or kQ8). Tolerance against float64: 1e-6 *
// |result| + 1e-30 in f32 (gates below -87 give 0); kQ8 adds half a step of its block.
#ifndef ASSAY_KERNELS_SILU_MUL_SILU_MUL_H_
#define ASSAY_KERNELS_SILU_MUL_SILU_MUL_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct SiluMulConstants {
  uint32_t cols = 0;
  uint32_t cols_per_group = 0;
};

Launch LaunchSiluMul(uint32_t rows, uint32_t cols, ActivationFormat out);

gpu::CpuWorkgroupFn PickSiluMulF32(Isa isa);
gpu::CpuWorkgroupFn PickSiluMulQ8(Isa isa);

void ReferenceSiluMul(std::span<const double> gate, std::span<const double> up,
                      std::span<double> out);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_SILU_MUL_SILU_MUL_H_
