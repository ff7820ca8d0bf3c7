// Gpu devices: what there is to run on, for `assay devices` and for a program that lets its user
// choose.
//
//   for (const DeviceListing& device : gpu::ListDevices("vulkan").value()) Show(device.name);
//   gpu::MakeBackend("vulkan", {.vulkan = {.device = "0"}});
#ifndef ASSAY_GPU_DEVICES_H_
#define ASSAY_GPU_DEVICES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"

namespace assay::gpu {

struct DeviceListing {
  uint32_t number = 0;  // What VulkanOptions::device takes.
  // The backend, the device's name and its limits, as a device made on it would say.
  DeviceInfo info;
  std::string type;           // "discrete", "integrated", "virtual", "cpu", "other" or "none".
  std::string driver;         // With its version; empty where there is none.
  std::string api_version;    // Of Vulkan; empty on other backends.
  uint64_t memory_bytes = 0;  // Of the device; 0: it has none of its own to tell of.
  uint32_t max_workgroup_invocations = 0;  // 0: no limit.
  std::string unusable;                    // Why the backend cannot run on it; empty when it can.
};

// The devices of one backend, by number. Errors: kNotFound for an unknown backend; kDevice when it
// has none here, with what to install.
Result<std::vector<DeviceListing>> ListDevices(std::string_view backend);

// Error kInvalidArgument for a name that VulkanOptions::disabled does not take, with the nearest
// one, or else all. Needs no driver.
Status CheckVulkanPaths(std::span<const std::string> names);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_DEVICES_H_
