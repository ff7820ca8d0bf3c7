// What vkCreateInstance is told so that the Khronos validation layer runs, with its checks of
// synchronisation.
#ifndef ASSAY_GPU_VULKAN_VALIDATION_LAYER_H_
#define ASSAY_GPU_VULKAN_VALIDATION_LAYER_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/vulkan/api.h"

namespace assay::gpu::vulkan {

inline constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

// The structures of VK_EXT_layer_settings, which the headers of Vulkan 1.3.239 do not know.
struct LayerSetting {
  const char* layer;
  const char* name;
  int32_t type;  // 0: VkBool32.
  uint32_t count;
  const void* values;
};
struct LayerSettings {
  VkStructureType type;
  const void* next;
  uint32_t count;
  const LayerSetting* settings;
};
inline constexpr auto kLayerSettingsType = static_cast<VkStructureType>(1000496000);
inline constexpr const char* kLayerSettingsExtension = "VK_EXT_layer_settings";

// Must live, where it is, for as long as the call of vkCreateInstance.
class ValidationRequest final {
 public:
  // `extensions` are the layer's own; `next` goes on with the chain. A layer with
  // VK_EXT_layer_settings is told to follow what shaders access through descriptors
  // (syncval_shader_accesses_heuristic), which it does not of itself; an older one always does.
  ValidationRequest(std::span<const VkExtensionProperties> extensions, const void* next);
  ValidationRequest(const ValidationRequest&) = delete;
  ValidationRequest& operator=(const ValidationRequest&) = delete;

  void AddTo(VkInstanceCreateInfo* info) const;

 private:
  std::array<VkValidationFeatureEnableEXT, 1> enabled_ = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkBool32 on_ = VK_TRUE;
  LayerSetting setting_ = {};
  LayerSettings settings_ = {};
  VkValidationFeaturesEXT features_ = {};
  std::array<const char*, 1> layers_ = {kValidationLayer};
  std::vector<const char*> extensions_;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_VALIDATION_LAYER_H_
