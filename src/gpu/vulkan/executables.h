// The figures of VK_KHR_pipeline_executable_properties in the form of a scan.
#ifndef ASSAY_GPU_VULKAN_EXECUTABLES_H_
#define ASSAY_GPU_VULKAN_EXECUTABLES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/vulkan/api.h"

namespace assay::gpu::vulkan {

// One piece of code that a driver made of a pipeline.
struct Executable {
  uint32_t subgroup_size = 0;
  std::vector<VkPipelineExecutableStatisticKHR> statistics;
};

// By name, in lower case with '-' for whatever is no letter or digit; values below 0 are 0 and
// fractions are rounded. Of the second executable and those behind it the names begin with its
// number, from 1: "1-register-count".
std::map<std::string, uint64_t> FiguresOf(const std::vector<Executable>& executables);

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_EXECUTABLES_H_
