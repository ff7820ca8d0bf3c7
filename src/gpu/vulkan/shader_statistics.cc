#include "gpu/shader_statistics.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gpu/vulkan/device.h"
#include "gpu/vulkan/executables.h"
#include "gpu/vulkan/instance.h"
#include "gpu/vulkan/kernel.h"
#include "gpu/vulkan/physical_device.h"

namespace assay::gpu {
namespace vulkan {
namespace {

class DriverStatistics final : public ShaderStatistics {
 public:
  DriverStatistics(std::unique_ptr<Instance> instance, std::unique_ptr<LogicalDevice> device)
      : instance_(std::move(instance)), device_(std::move(device)) {}

  Status Load() {
    const auto load = [&](const char* name) {
      return instance_->api().vkGetDeviceProcAddr(device_->handle(), name);
    };
    properties_ = reinterpret_cast<PFN_vkGetPipelineExecutablePropertiesKHR>(
        load("vkGetPipelineExecutablePropertiesKHR"));
    statistics_ = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
        load("vkGetPipelineExecutableStatisticsKHR"));
    if (properties_ != nullptr && statistics_ != nullptr) return {};
    return Fail(ErrorCode::kDevice, device_name(),
                fmt::format("The driver of the Vulkan device \"{}\" has no "
                            "vkGetPipelineExecutableStatisticsKHR.",
                            device_name()));
  }

  const std::string& device_name() const override { return device_->physical().name; }

  Result<std::map<std::string, uint64_t>> Ask(const KernelDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<VulkanKernel> kernel,
                           VulkanKernel::Create(*device_, desc, false));
    VkPipelineInfoKHR pipeline = {};
    pipeline.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR;
    pipeline.pipeline = kernel->pipeline();
    VkPipelineExecutablePropertiesKHR property = {};
    property.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
    ASSAY_ASSIGN_OR_RETURN(const std::vector<VkPipelineExecutablePropertiesKHR> properties,
                           List("vkGetPipelineExecutablePropertiesKHR", desc, property,
                                [&](uint32_t* count, VkPipelineExecutablePropertiesKHR* out) {
                                  return properties_(device_->handle(), &pipeline, count, out);
                                }));
    std::vector<Executable> executables;
    for (uint32_t i = 0; i < properties.size(); ++i) {
      VkPipelineExecutableInfoKHR executable = {};
      executable.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR;
      executable.pipeline = kernel->pipeline();
      executable.executableIndex = i;
      VkPipelineExecutableStatisticKHR statistic = {};
      statistic.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
      ASSAY_ASSIGN_OR_RETURN(std::vector<VkPipelineExecutableStatisticKHR> statistics,
                             List("vkGetPipelineExecutableStatisticsKHR", desc, statistic,
                                  [&](uint32_t* count, VkPipelineExecutableStatisticKHR* out) {
                                    return statistics_(device_->handle(), &executable, count, out);
                                  }));
      executables.push_back({properties[i].subgroupSize, std::move(statistics)});
    }
    return FiguresOf(executables);
  }

 private:
  // Calls a function that lists: once for the count, once for the elements, which begin as `empty`.
  template <typename Element, typename Call>
  Result<std::vector<Element>> List(std::string_view function, const KernelDesc& desc,
                                    const Element& empty, const Call& call) {
    const std::string doing =
        fmt::format("The driver cannot be asked for the code of kernel \"{}\"", desc.name);
    uint32_t count = 0;
    ASSAY_TRY(device_->Try(function, desc.name, doing, [&] { return call(&count, nullptr); }));
    std::vector<Element> elements(count, empty);
    ASSAY_TRY(
        device_->Try(function, desc.name, doing, [&] { return call(&count, elements.data()); }));
    elements.resize(count);
    return elements;
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<LogicalDevice> device_;
  PFN_vkGetPipelineExecutablePropertiesKHR properties_ = nullptr;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics_ = nullptr;
};

}  // namespace
}  // namespace vulkan

Result<std::unique_ptr<ShaderStatistics>> OpenShaderStatistics(const VulkanOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const vulkan::OptionalPaths disabled,
                         vulkan::ParsePaths(options.disabled));
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::Instance> instance,
                         vulkan::Instance::Create(options.validation));
  ASSAY_ASSIGN_OR_RETURN(std::vector<vulkan::PhysicalDevice> devices,
                         vulkan::FindDevices(*instance));
  ASSAY_ASSIGN_OR_RETURN(vulkan::PhysicalDevice physical,
                         vulkan::ChooseDevice(std::move(devices), options.device));
  if (!physical.executable_properties) {
    return Fail(ErrorCode::kUnsupported, physical.name,
                fmt::format("The driver of the Vulkan device \"{}\" says nothing of the code that "
                            "it makes: it has no {}.",
                            physical.name, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME));
  }
  physical.capture_statistics = true;
  ASSAY_ASSIGN_OR_RETURN(
      std::unique_ptr<vulkan::LogicalDevice> device,
      vulkan::LogicalDevice::Create(*instance, std::move(physical), disabled, {}));
  auto statistics =
      std::make_unique<vulkan::DriverStatistics>(std::move(instance), std::move(device));
  ASSAY_TRY(statistics->Load());
  return statistics;
}

}  // namespace assay::gpu
