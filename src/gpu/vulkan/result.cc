#include "gpu/vulkan/result.h"

#include <utility>

#include <fmt/format.h>

namespace assay::gpu::vulkan {

std::string ResultName(VkResult result) {
  switch (result) {
#define ASSAY_RESULT(name) \
  case name:               \
    return #name
    ASSAY_RESULT(VK_SUCCESS);
    ASSAY_RESULT(VK_NOT_READY);
    ASSAY_RESULT(VK_TIMEOUT);
    ASSAY_RESULT(VK_INCOMPLETE);
    ASSAY_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY);
    ASSAY_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    ASSAY_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY);
    ASSAY_RESULT(VK_ERROR_FRAGMENTED_POOL);
    ASSAY_RESULT(VK_ERROR_INITIALIZATION_FAILED);
    ASSAY_RESULT(VK_ERROR_DEVICE_LOST);
    ASSAY_RESULT(VK_ERROR_MEMORY_MAP_FAILED);
    ASSAY_RESULT(VK_ERROR_LAYER_NOT_PRESENT);
    ASSAY_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT);
    ASSAY_RESULT(VK_ERROR_FEATURE_NOT_PRESENT);
    ASSAY_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER);
    ASSAY_RESULT(VK_ERROR_TOO_MANY_OBJECTS);
    ASSAY_RESULT(VK_ERROR_INVALID_EXTERNAL_HANDLE);
    ASSAY_RESULT(VK_ERROR_INVALID_SHADER_NV);
    ASSAY_RESULT(VK_ERROR_UNKNOWN);
#undef ASSAY_RESULT
    default:
      return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

Error ResultError(VkResult result, std::string_view function, std::string subject,
                  std::string_view doing) {
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY ||
                      result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                      result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL ||
                      result == VK_ERROR_TOO_MANY_OBJECTS;
  return Error(memory ? ErrorCode::kAllocation : ErrorCode::kDevice, std::move(subject),
               fmt::format("{}: {} gave {}.", doing, function, ResultName(result)));
}

}  // namespace assay::gpu::vulkan
