// What a SPIR-V module says about itself, as far as it decides whether a device can run it.
#ifndef ASSAY_GPU_VULKAN_SHADER_CODE_H_
#define ASSAY_GPU_VULKAN_SHADER_CODE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "assay/base.h"

#include "gpu/vulkan/physical_device.h"

namespace assay::gpu::vulkan {

// Whether `device` (whose paths are those in use) can run the module as kernel `kernel` with
// workgroups of `workgroup`. Errors: kKernelCompile for words that are no module or have another
// workgroup; kUnsupported, naming what is missing, for a capability that the device lacks.
Status CheckShader(std::span<const uint32_t> words, const PhysicalDevice& device,
                   std::string_view kernel, Extent3 workgroup);

// Whether a module that CheckShader accepts asks for the length of an array without one.
bool AsksLengths(std::span<const uint32_t> words);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_SHADER_CODE_H_
