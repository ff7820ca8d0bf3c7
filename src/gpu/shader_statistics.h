// What a Vulkan driver says of the machine code that it makes of a shader: registers, spills, and
// whatever else it counts.
#ifndef ASSAY_GPU_SHADER_STATISTICS_H_
#define ASSAY_GPU_SHADER_STATISTICS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "assay/base.h"
#include "assay/gpu.h"

namespace assay::gpu {

// One device of its own; thread-compatible.
class ShaderStatistics {
 public:
  ShaderStatistics() = default;
  ShaderStatistics(const ShaderStatistics&) = delete;
  ShaderStatistics& operator=(const ShaderStatistics&) = delete;
  virtual ~ShaderStatistics() = default;

  virtual const std::string& device_name() const = 0;
  // Builds the kernel, runs nothing. By the driver's names, in lower case with '-' for whatever is
  // no letter or digit ("register-count"), and "subgroup-size". Errors: those of building a kernel;
  // kDevice.
  virtual Result<std::map<std::string, uint64_t>> Ask(const KernelDesc& desc) = 0;
};

// On the device that `options` means. Errors: those of MakeBackend("vulkan"); kUnsupported where
// the driver has no VK_KHR_pipeline_executable_properties.
Result<std::unique_ptr<ShaderStatistics>> OpenShaderStatistics(const VulkanOptions& options);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SHADER_STATISTICS_H_
