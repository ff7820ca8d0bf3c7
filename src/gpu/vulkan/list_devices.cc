#include <string>
#include <utility>

#include <fmt/format.h>

#include "assay/gpu_devices.h"

#include "gpu/vulkan/instance.h"
#include "gpu/vulkan/physical_device.h"
#include "gpu/vulkan/vulkan_backend.h"

namespace assay::gpu {
namespace {

DeviceListing Describe(const vulkan::Instance& instance, const vulkan::PhysicalDevice& device,
                       uint32_t number) {
  DeviceListing listing;
  listing.number = number;
  listing.info = vulkan::MakeInfo(device);
  listing.type = vulkan::TypeName(device.type);
  listing.driver = device.driver;
  listing.api_version = fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(device.api_version),
                                    VK_API_VERSION_MINOR(device.api_version),
                                    VK_API_VERSION_PATCH(device.api_version));
  listing.memory_bytes = vulkan::DriverMemory(instance, device).total_bytes;
  listing.max_workgroup_invocations = device.limits.maxComputeWorkGroupInvocations;
  listing.unusable = device.unusable;
  return listing;
}

}  // namespace

Result<std::vector<DeviceListing>> ListVulkanDevices() {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<vulkan::Instance> instance,
                         vulkan::Instance::Create(nullptr));
  ASSAY_ASSIGN_OR_RETURN(const std::vector<vulkan::PhysicalDevice> devices,
                         vulkan::FindDevices(*instance));
  std::vector<DeviceListing> listings;
  for (const vulkan::PhysicalDevice& device : devices) {
    listings.push_back(Describe(*instance, device, static_cast<uint32_t>(listings.size())));
  }
  return listings;
}

}  // namespace assay::gpu
