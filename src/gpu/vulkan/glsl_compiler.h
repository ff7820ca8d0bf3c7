// Compiles the GLSL of a kernel at run time, as glslc does when the program is built.
#ifndef ASSAY_GPU_VULKAN_GLSL_COMPILER_H_
#define ASSAY_GPU_VULKAN_GLSL_COMPILER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/vulkan/spirv_kernel.h"

namespace assay::gpu::vulkan {

// Error kKernelCompile, with the compiler's messages.
Result<std::vector<uint32_t>> CompileGlsl(const SpirvKernel& kernel, std::string_view name);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_GLSL_COMPILER_H_
