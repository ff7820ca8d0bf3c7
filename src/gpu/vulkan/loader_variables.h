// The variables of the environment by which the Vulkan loader leaves out drivers, for messages
// about a driver or a device that is not found.
#ifndef ASSAY_GPU_VULKAN_LOADER_VARIABLES_H_
#define ASSAY_GPU_VULKAN_LOADER_VARIABLES_H_

#include <string>

namespace assay::gpu::vulkan {

// For each such variable that is set, its value, what it does and what to do, separated by "; ";
// empty where none is set.
std::string HiddenDrivers();

// The same of those that name driver files, also beside the loader's own, and how to learn which
// file of all is damaged; never empty.
std::string DamagedFiles();

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_LOADER_VARIABLES_H_
