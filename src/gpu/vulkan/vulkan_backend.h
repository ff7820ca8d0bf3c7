// The backend that runs kernels of the code format "spirv" on a Vulkan device (docs/vulkan.md).
#ifndef ASSAY_GPU_VULKAN_VULKAN_BACKEND_H_
#define ASSAY_GPU_VULKAN_VULKAN_BACKEND_H_

#include <memory>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"
#include "assay/gpu_devices.h"

#include "gpu/backend.h"
#include "gpu/vulkan/hooks.h"

namespace assay::gpu {

// Errors: kDevice without a loader, driver or usable device, with what to install; kNotFound for a
// device that is not there; kInvalidArgument for an unknown optional path.
Result<std::unique_ptr<Backend>> MakeVulkanBackend(const BackendOptions& options,
                                                   const vulkan::Hooks& hooks = {});

// By number. Error kDevice without a loader, driver or device.
Result<std::vector<DeviceListing>> ListVulkanDevices();

}  // namespace assay::gpu

#endif  // ASSAY_GPU_VULKAN_VULKAN_BACKEND_H_
