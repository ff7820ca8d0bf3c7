#include "gpu/vulkan/validation_layer.h"

#include <algorithm>
#include <string_view>

namespace assay::gpu::vulkan {

ValidationRequest::ValidationRequest(std::span<const VkExtensionProperties> extensions,
                                     const void* next)
    : extensions_{VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME} {
  features_.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features_.pNext = next;
  features_.enabledValidationFeatureCount = enabled_.size();
  features_.pEnabledValidationFeatures = enabled_.data();
  const bool takes_settings =
      std::ranges::any_of(extensions, [](const VkExtensionProperties& extension) {
        return std::string_view(extension.extensionName) == kLayerSettingsExtension;
      });
  if (!takes_settings) return;
  extensions_.push_back(kLayerSettingsExtension);
  setting_ = {kValidationLayer, "syncval_shader_accesses_heuristic", 0, 1, &on_};
  settings_ = {kLayerSettingsType, next, 1, &setting_};
  features_.pNext = &settings_;
}

void ValidationRequest::AddTo(VkInstanceCreateInfo* info) const {
  info->pNext = &features_;
  info->enabledLayerCount = static_cast<uint32_t>(layers_.size());
  info->ppEnabledLayerNames = layers_.data();
  info->enabledExtensionCount = static_cast<uint32_t>(extensions_.size());
  info->ppEnabledExtensionNames = extensions_.data();
}

}  // namespace assay::gpu::vulkan
