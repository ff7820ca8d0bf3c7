// The Vulkan functions that the backend calls, as tables that belong to one instance and to one
// device. Two backends in one process share nothing.
#ifndef ASSAY_GPU_VULKAN_API_H_
#define ASSAY_GPU_VULKAN_API_H_

#include <vulkan/vulkan.h>

namespace assay::gpu::vulkan {

#define ASSAY_VULKAN_GLOBAL_FUNCTIONS(X) \
  X(vkCreateInstance)                    \
  X(vkEnumerateInstanceVersion)          \
  X(vkEnumerateInstanceLayerProperties)  \
  X(vkEnumerateInstanceExtensionProperties)

#define ASSAY_VULKAN_INSTANCE_FUNCTIONS(X)    \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

#define ASSAY_VULKAN_DEVICE_FUNCTIONS(X) \
  X(vkDestroyDevice)                     \
  X(vkDeviceWaitIdle)                    \
  X(vkGetDeviceQueue)                    \
  X(vkQueueSubmit)                       \
  X(vkAllocateMemory)                    \
  X(vkFreeMemory)                        \
  X(vkMapMemory)                         \
  X(vkCreateBuffer)                      \
  X(vkDestroyBuffer)                     \
  X(vkGetBufferMemoryRequirements)       \
  X(vkBindBufferMemory)                  \
  X(vkCreateShaderModule)                \
  X(vkDestroyShaderModule)               \
  X(vkCreateDescriptorSetLayout)         \
  X(vkDestroyDescriptorSetLayout)        \
  X(vkCreatePipelineLayout)              \
  X(vkDestroyPipelineLayout)             \
  X(vkCreateDescriptorUpdateTemplate)    \
  X(vkDestroyDescriptorUpdateTemplate)   \
  X(vkCreateComputePipelines)            \
  X(vkDestroyPipeline)                   \
  X(vkCreateDescriptorPool)              \
  X(vkDestroyDescriptorPool)             \
  X(vkResetDescriptorPool)               \
  X(vkAllocateDescriptorSets)            \
  X(vkUpdateDescriptorSets)              \
  X(vkCreateCommandPool)                 \
  X(vkDestroyCommandPool)                \
  X(vkAllocateCommandBuffers)            \
  X(vkBeginCommandBuffer)                \
  X(vkEndCommandBuffer)                  \
  X(vkCmdBindPipeline)                   \
  X(vkCmdBindDescriptorSets)             \
  X(vkCmdPushConstants)                  \
  X(vkCmdDispatch)                       \
  X(vkCmdPipelineBarrier)                \
  X(vkCmdCopyBuffer)                     \
  X(vkCmdFillBuffer)                     \
  X(vkCreateSemaphore)                   \
  X(vkDestroySemaphore)                  \
  X(vkWaitSemaphores)                    \
  X(vkGetSemaphoreCounterValue)          \
  X(vkCreateFence)                       \
  X(vkDestroyFence)                      \
  X(vkWaitForFences)                     \
  X(vkGetFenceStatus)

#define ASSAY_VULKAN_MEMBER(name) PFN_##name name = nullptr;

struct GlobalApi {
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  ASSAY_VULKAN_GLOBAL_FUNCTIONS(ASSAY_VULKAN_MEMBER)
};

struct InstanceApi {
  ASSAY_VULKAN_INSTANCE_FUNCTIONS(ASSAY_VULKAN_MEMBER)
};

struct DeviceApi {
  ASSAY_VULKAN_DEVICE_FUNCTIONS(ASSAY_VULKAN_MEMBER)
  // Null without push descriptors.
  PFN_vkCmdPushDescriptorSetWithTemplateKHR push_descriptors = nullptr;
};

#undef ASSAY_VULKAN_MEMBER

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_API_H_
