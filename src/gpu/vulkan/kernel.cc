#include "gpu/vulkan/kernel.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gpu/spirv/module.h"
#include "gpu/vulkan/glsl_compiler.h"
#include "gpu/vulkan/shader_code.h"
#include "gpu/vulkan/spirv_kernel.h"

namespace assay::gpu::vulkan {
namespace {

// The size that shaders are written for; others work, by way of shared memory.
constexpr uint32_t kSubgroupSize = 32;

std::string Doing(const KernelDesc& desc) {
  return fmt::format("Kernel \"{}\" cannot be built", desc.name);
}

Result<const SpirvKernel*> FindCode(const KernelDesc& desc) {
  const auto code = std::ranges::find(desc.code, kSpirvCodeFormat, &KernelCode::format);
  if (code == desc.code.end()) {
    return Fail(ErrorCode::kUnsupported, std::string(desc.name),
                fmt::format("Kernel \"{}\" has no code in the format \"{}\" among its {}.",
                            desc.name, kSpirvCodeFormat, desc.code.size()));
  }
  if (code->data == nullptr || code->size_bytes != sizeof(SpirvKernel)) {
    return Fail(ErrorCode::kKernelCompile, std::string(desc.name),
                fmt::format("The spirv code ({} bytes) of kernel \"{}\" is not a kernel "
                            "description ({} bytes).",
                            code->size_bytes, desc.name, sizeof(SpirvKernel)));
  }
  return static_cast<const SpirvKernel*>(code->data);
}

Status CheckLimits(const PhysicalDevice& device, const KernelDesc& desc) {
  const VkPhysicalDeviceLimits& limits = device.limits;
  const auto fail = [&](std::string_view what, uint64_t wanted, uint64_t limit) {
    return Fail(ErrorCode::kUnsupported, std::string(desc.name),
                fmt::format("The {} ({}) of kernel \"{}\" are more than the Vulkan device \"{}\" "
                            "takes ({}).",
                            what, wanted, desc.name, device.name, limit));
  };
  const uint32_t push = PushBytes(desc.constant_bytes, desc.binding_count);
  if (push > limits.maxPushConstantsSize) {
    return fail("bytes of push constants", push, limits.maxPushConstantsSize);
  }
  const uint32_t bindings =
      Has(device.paths, OptionalPath::kPushDescriptors)
          ? std::min(limits.maxPerStageDescriptorStorageBuffers, device.max_push_descriptors)
          : limits.maxPerStageDescriptorStorageBuffers;
  if (desc.binding_count > bindings) return fail("bindings", desc.binding_count, bindings);
  if (desc.workgroup.Count() > limits.maxComputeWorkGroupInvocations) {
    return fail("invocations of a workgroup", desc.workgroup.Count(),
                limits.maxComputeWorkGroupInvocations);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<VulkanKernel>> VulkanKernel::Create(const LogicalDevice& device,
                                                           const KernelDesc& desc,
                                                           bool from_source) {
  ASSAY_ASSIGN_OR_RETURN(const SpirvKernel* const code, FindCode(desc));
  std::vector<uint32_t> compiled;
  std::span<const uint32_t> words = code->words;
  if (from_source) {
    ASSAY_ASSIGN_OR_RETURN(compiled, CompileGlsl(*code, desc.name));
    words = compiled;
  }
  ASSAY_TRY(CheckShader(words, device.physical(), desc.name, desc.workgroup));
  ASSAY_TRY(CheckLimits(device.physical(), desc));
  std::unique_ptr<VulkanKernel> kernel(new VulkanKernel(
      BackendKernelInfo{std::string(desc.name), spirv::DigestOf(words, code->specialization)}));
  kernel->asks_lengths_ = AsksLengths(words);
  ASSAY_TRY(kernel->MakeLayouts(device, desc));
  if (device.uses(OptionalPath::kPushDescriptors) && desc.binding_count > 0) {
    ASSAY_TRY(kernel->MakePushTemplate(device, desc));
  }
  ASSAY_TRY(kernel->MakePipeline(device, desc, words, code->specialization));
  return kernel;
}

Status VulkanKernel::MakeLayouts(const LogicalDevice& device, const KernelDesc& desc) {
  std::vector<VkDescriptorSetLayoutBinding> bindings(desc.binding_count);
  for (uint32_t i = 0; i < desc.binding_count; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set_info = {};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.flags = device.uses(OptionalPath::kPushDescriptors)
                       ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR
                       : 0;
  set_info.bindingCount = desc.binding_count;
  set_info.pBindings = bindings.data();
  ASSAY_ASSIGN_OR_RETURN(
      set_layout_,
      Make<VkDescriptorSetLayout>(device, device.api().vkCreateDescriptorSetLayout, set_info,
                                  "vkCreateDescriptorSetLayout", desc.name, Doing(desc)));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     PushBytes(desc.constant_bytes, desc.binding_count)};
  const VkDescriptorSetLayout set_layout = set_layout_.get();
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout;
  info.pushConstantRangeCount = range.size == 0 ? 0 : 1;
  info.pPushConstantRanges = &range;
  ASSAY_ASSIGN_OR_RETURN(layout_,
                         Make<VkPipelineLayout>(device, device.api().vkCreatePipelineLayout, info,
                                                "vkCreatePipelineLayout", desc.name, Doing(desc)));
  return {};
}

Status VulkanKernel::MakePushTemplate(const LogicalDevice& device, const KernelDesc& desc) {
  VkDescriptorUpdateTemplateEntry entry = {};
  entry.descriptorCount = 1;
  entry.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  entry.stride = sizeof(VkDescriptorBufferInfo);
  std::vector<VkDescriptorUpdateTemplateEntry> entries(desc.binding_count, entry);
  for (uint32_t i = 0; i < desc.binding_count; ++i) {
    entries[i].dstBinding = i;
    entries[i].offset = i * sizeof(VkDescriptorBufferInfo);
  }
  VkDescriptorUpdateTemplateCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO;
  info.descriptorUpdateEntryCount = desc.binding_count;
  info.pDescriptorUpdateEntries = entries.data();
  info.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR;
  info.pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE;
  info.pipelineLayout = layout_.get();
  ASSAY_ASSIGN_OR_RETURN(
      push_template_,
      Make<VkDescriptorUpdateTemplate>(device, device.api().vkCreateDescriptorUpdateTemplate, info,
                                       "vkCreateDescriptorUpdateTemplate", desc.name, Doing(desc)));
  return {};
}

Status VulkanKernel::MakePipeline(const LogicalDevice& device, const KernelDesc& desc,
                                  std::span<const uint32_t> words,
                                  std::span<const uint32_t> specialization) {
  VkShaderModuleCreateInfo module_info = {};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size_bytes();
  module_info.pCode = words.data();
  ASSAY_ASSIGN_OR_RETURN(
      const Owned<VkShaderModule> module,
      Make<VkShaderModule>(device, device.api().vkCreateShaderModule, module_info,
                           "vkCreateShaderModule", desc.name, Doing(desc)));

  std::vector<VkSpecializationMapEntry> entries(specialization.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i] = {i, i * static_cast<uint32_t>(sizeof(uint32_t)), sizeof(uint32_t)};
  }
  const VkSpecializationInfo values = {static_cast<uint32_t>(entries.size()), entries.data(),
                                       specialization.size_bytes(), specialization.data()};

  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.layout = layout_.get();
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = "main";
  if (!entries.empty()) info.stage.pSpecializationInfo = &values;

  const PhysicalDevice& physical = device.physical();
  if (physical.capture_statistics) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  size.requiredSubgroupSize = kSubgroupSize;
  if (device.uses(OptionalPath::kSubgroupSize)) {
    const bool choose = physical.choose_subgroup_size &&
                        physical.min_subgroup_size <= kSubgroupSize &&
                        kSubgroupSize <= physical.max_subgroup_size;
    if (choose) info.stage.pNext = &size;
    if (desc.workgroup.x % (choose ? kSubgroupSize : physical.max_subgroup_size) == 0) {
      info.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  ASSAY_TRY(device.Try("vkCreateComputePipelines", desc.name, Doing(desc), [&] {
    return device.api().vkCreateComputePipelines(device.handle(), VK_NULL_HANDLE, 1, &info, nullptr,
                                                 &pipeline);
  }));
  pipeline_ = Owned<VkPipeline>(&device, pipeline);
  return {};
}

}  // namespace assay::gpu::vulkan
