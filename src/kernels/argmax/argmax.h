// argmax: out[i] (int32) = the lowest column of the largest value of row i.
//
// Bindings: x (f32, read), out (int32, write). A NaN never wins; a row of NaN alone gives -1.
// Exact.
#ifndef ASSAY_KERNELS_ARGMAX_ARGMAX_H_
#define ASSAY_KERNELS_ARGMAX_ARGMAX_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct ArgMaxConstants {
  uint32_t cols = 0;
};

Launch LaunchArgMax(uint32_t rows, uint32_t cols);

gpu::CpuWorkgroupFn PickArgMax(Isa isa);

// One row.
int32_t ReferenceArgMax(std::span<const float> row);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_ARGMAX_ARGMAX_H_
