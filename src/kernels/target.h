// Target: the two kinds of device that the kernels are written for.
#ifndef ASSAY_KERNELS_TARGET_H_
#define ASSAY_KERNELS_TARGET_H_

#include <cstdint>
#include <string_view>

#include "gpu/vulkan/spirv_kernel.h"

namespace assay::kernels {

enum class Target : uint8_t {
  kCpu,    // Functions of workgroups (cpu.cc): a workgroup is much work for one thread.
  kSpirv,  // Compute shaders (vulkan.comp): a workgroup is a little work for many invocations.
};

// By DeviceInfo::code_format.
constexpr Target TargetOf(std::string_view code_format) {
  return code_format == gpu::kSpirvCodeFormat ? Target::kSpirv : Target::kCpu;
}

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_TARGET_H_
