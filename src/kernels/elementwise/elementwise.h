// add and mul: out = a + b, out = a * b, element by element.
//
// Bindings: a, b (f32, read), out (f32, write; may be a or b itself). Each result is rounded once.
#ifndef ASSAY_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define ASSAY_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels {

struct ElementwiseConstants {
  uint32_t count = 0;
  uint32_t per_group = 0;
};

Launch LaunchAdd(uint32_t count, Target target = Target::kCpu);
Launch LaunchMul(uint32_t count, Target target = Target::kCpu);

gpu::CpuWorkgroupFn PickAdd(Isa isa);
gpu::CpuWorkgroupFn PickMul(Isa isa);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
