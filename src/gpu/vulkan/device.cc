#include "gpu/vulkan/device.h"

#include <vector>

#include <fmt/format.h>

namespace assay::gpu::vulkan {

Result<std::unique_ptr<LogicalDevice>> LogicalDevice::Create(const Instance& instance,
                                                             PhysicalDevice physical,
                                                             const OptionalPaths& disabled,
                                                             Hooks hooks) {
  physical.paths &= ~disabled;
  std::unique_ptr<LogicalDevice> device(new LogicalDevice(std::move(physical), std::move(hooks)));
  ASSAY_TRY(device->Make(instance));
  return device;
}

LogicalDevice::~LogicalDevice() {
  if (handle_ == VK_NULL_HANDLE || api_.vkDestroyDevice == nullptr) return;
  api_.vkDestroyDevice(handle_, nullptr);
  live().alive.fetch_sub(1, std::memory_order_relaxed);
}

Error LogicalDevice::LostError() const {
  return Error(ErrorCode::kDevice, physical_.name,
               fmt::format("The Vulkan device \"{}\" has been lost.", physical_.name));
}

Status LogicalDevice::Make(const Instance& instance) {
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;

  std::vector<const char*> extensions;
  const bool core13 = physical_.api_version >= VK_API_VERSION_1_3;
  const auto flag = [](bool on) -> VkBool32 { return on ? VK_TRUE : VK_FALSE; };
  VkPhysicalDeviceFeatures2 features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.features.shaderInt16 = flag(physical_.int16);
  features.features.shaderInt64 = flag(physical_.int64);
  features.features.shaderFloat64 = flag(physical_.float64);
  VkPhysicalDeviceVulkan11Features features11 = {};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.storageBuffer16BitAccess = flag(uses(OptionalPath::kStorage16));
  VkPhysicalDeviceVulkan12Features features12 = {};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.storageBuffer8BitAccess = flag(uses(OptionalPath::kStorage8));
  features12.shaderFloat16 = flag(uses(OptionalPath::kFloat16));
  features12.shaderInt8 = flag(uses(OptionalPath::kInt8));
  features12.timelineSemaphore = flag(uses(OptionalPath::kTimelineSemaphores));
  features12.vulkanMemoryModel = flag(physical_.memory_model);
  features12.vulkanMemoryModelDeviceScope = flag(physical_.memory_model);
  features11.pNext = &features12;
  features.pNext = &features11;

  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup = {};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  subgroup.subgroupSizeControl = VK_TRUE;
  subgroup.computeFullSubgroups = VK_TRUE;
  if (uses(OptionalPath::kSubgroupSize)) {
    if (!core13) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    subgroup.pNext = features.pNext;
    features.pNext = &subgroup;
  }
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  dot.shaderIntegerDotProduct = VK_TRUE;
  if (uses(OptionalPath::kIntegerDotProduct)) {
    if (!core13) extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    dot.pNext = features.pNext;
    features.pNext = &dot;
  }
  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrix = {};
  matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV;
  matrix.cooperativeMatrix = VK_TRUE;
  if (uses(OptionalPath::kCooperativeMatrix)) {
    extensions.push_back(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME);
    matrix.pNext = features.pNext;
    features.pNext = &matrix;
  }
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables = {};
  executables.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
  executables.pipelineExecutableInfo = VK_TRUE;
  if (physical_.capture_statistics) {
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    executables.pNext = features.pNext;
    features.pNext = &executables;
  }
  if (uses(OptionalPath::kPushDescriptors)) {
    extensions.push_back(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  }

  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  ASSAY_TRY(Try("vkCreateDevice", physical_.name,
                fmt::format("The Vulkan device \"{}\" cannot be opened", physical_.name), [&] {
                  return instance.api().vkCreateDevice(physical_.handle, &info, nullptr, &handle_);
                }));
  live().created.fetch_add(1, std::memory_order_relaxed);
  live().alive.fetch_add(1, std::memory_order_relaxed);
  ASSAY_TRY(LoadFunctions(instance));
  api_.vkGetDeviceQueue(handle_, physical_.queue_family, 0, &queue_);
  return {};
}

Status LogicalDevice::LoadFunctions(const Instance& instance) {
  const auto load = [&](const char* name) {
    return instance.api().vkGetDeviceProcAddr(handle_, name);
  };
  const char* missing = nullptr;
#define ASSAY_LOAD(name)                                 \
  api_.name = reinterpret_cast<PFN_##name>(load(#name)); \
  if (api_.name == nullptr) missing = #name;
  ASSAY_VULKAN_DEVICE_FUNCTIONS(ASSAY_LOAD)
#undef ASSAY_LOAD
  if (uses(OptionalPath::kPushDescriptors)) {
    api_.push_descriptors = reinterpret_cast<PFN_vkCmdPushDescriptorSetWithTemplateKHR>(
        load("vkCmdPushDescriptorSetWithTemplateKHR"));
    if (api_.push_descriptors == nullptr) missing = "vkCmdPushDescriptorSetWithTemplateKHR";
  }
  if (missing == nullptr) return {};
  return Fail(
      ErrorCode::kDevice, physical_.name,
      fmt::format("The driver of the Vulkan device \"{}\" has no {}.", physical_.name, missing));
}

}  // namespace assay::gpu::vulkan
