// Vulkan's results as errors of the library.
#ifndef ASSAY_GPU_VULKAN_RESULT_H_
#define ASSAY_GPU_VULKAN_RESULT_H_

#include <string>
#include <string_view>

#include "assay/base.h"

#include "gpu/vulkan/api.h"

namespace assay::gpu::vulkan {

// "VK_ERROR_DEVICE_LOST", ...; the number where the result has no name here.
std::string ResultName(VkResult result);

// kAllocation for exhausted memory, kDevice for all else. `subject` is what failed (a buffer's
// label, a kernel, the device) and `doing` says what was tried: "Buffer \"kv\" (64 bytes) cannot be
// made".
Error ResultError(VkResult result, std::string_view function, std::string subject,
                  std::string_view doing);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_RESULT_H_
