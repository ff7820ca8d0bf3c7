// PhysicalDevice: what a driver says of one device, and which device a program's words mean.
#ifndef ASSAY_GPU_VULKAN_PHYSICAL_DEVICE_H_
#define ASSAY_GPU_VULKAN_PHYSICAL_DEVICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/vulkan/api.h"
#include "gpu/vulkan/instance.h"
#include "gpu/vulkan/optional_path.h"

namespace assay::gpu::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name;
  std::string driver;  // With its version.
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t api_version = 0;
  VkPhysicalDeviceLimits limits = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  uint64_t max_allocation_bytes = 0;
  uint32_t max_push_descriptors = 0;
  // Of subgroups: the size that a shader gets by default, and the sizes it may ask for.
  uint32_t subgroup_size = 0;
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  VkSubgroupFeatureFlags subgroup_operations = 0;
  bool choose_subgroup_size = false;  // Compute shaders may ask for a size.
  bool int16 = false;
  bool int64 = false;
  bool float64 = false;
  bool memory_model = false;
  bool memory_budget = false;          // VK_EXT_memory_budget.
  bool executable_properties = false;  // VK_KHR_pipeline_executable_properties.
  // A device made of this keeps them for each pipeline; not what a driver says.
  bool capture_statistics = false;
  uint32_t queue_family = 0;
  OptionalPaths paths;   // Those that the driver has.
  std::string unusable;  // Why the backend cannot run on it; empty when it can.
};

// What a backend on `device` says of itself; `paths` are those in use.
DeviceInfo MakeInfo(const PhysicalDevice& device);

// Of the memory that is the device's own, as its driver tells; what is free only where it tells.
DeviceMemory DriverMemory(const Instance& instance, const PhysicalDevice& device);

// Of the memory that buffers on `device` lie in: the host's where the processor plays the GPU,
// whatever its driver says.
DeviceMemory MemoryOf(const Instance& instance, const PhysicalDevice& device);

// "discrete", "integrated", "virtual", "cpu" or "other".
std::string_view TypeName(VkPhysicalDeviceType type);

// All devices: discrete ones first, then integrated, virtual, CPUs and others, each kind in the
// driver's order. A device's number is its place here, from 0.
Result<std::vector<PhysicalDevice>> FindDevices(const Instance& instance);

// The device that `wanted` means: a number, or a part of a name in any case, of which the first
// usable one counts; empty: the first usable. Errors: kNotFound, with what there is; kDevice when
// it cannot be used.
Result<PhysicalDevice> ChooseDevice(std::vector<PhysicalDevice> devices, std::string_view wanted);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_PHYSICAL_DEVICE_H_
