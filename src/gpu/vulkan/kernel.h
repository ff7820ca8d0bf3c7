// VulkanKernel: a compute pipeline with its layouts.
#ifndef ASSAY_GPU_VULKAN_KERNEL_H_
#define ASSAY_GPU_VULKAN_KERNEL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/vulkan/device.h"

namespace assay::gpu::vulkan {

class VulkanKernel final : public BackendKernel {
 public:
  // From the SPIR-V in `desc`, or, with `from_source`, from the GLSL beside it. Errors:
  // kUnsupported without SPIR-V or for what the device lacks; kKernelCompile.
  static Result<std::unique_ptr<VulkanKernel>> Create(const LogicalDevice& device,
                                                      const KernelDesc& desc, bool from_source);

  const BackendKernelInfo& info() const override { return info_; }
  // Whether the shader asks for the length of a binding.
  bool asks_lengths() const { return asks_lengths_; }
  VkPipeline pipeline() const { return pipeline_.get(); }
  VkPipelineLayout layout() const { return layout_.get(); }
  VkDescriptorSetLayout set_layout() const { return set_layout_.get(); }
  // Of one VkDescriptorBufferInfo a binding, in order. Null without push descriptors or bindings.
  VkDescriptorUpdateTemplate push_template() const { return push_template_.get(); }

 private:
  explicit VulkanKernel(BackendKernelInfo info) : info_(std::move(info)) {}
  Status MakeLayouts(const LogicalDevice& device, const KernelDesc& desc);
  Status MakePushTemplate(const LogicalDevice& device, const KernelDesc& desc);
  Status MakePipeline(const LogicalDevice& device, const KernelDesc& desc,
                      std::span<const uint32_t> words, std::span<const uint32_t> specialization);

  BackendKernelInfo info_;
  bool asks_lengths_ = false;
  Owned<VkDescriptorSetLayout> set_layout_;
  Owned<VkPipelineLayout> layout_;
  Owned<VkDescriptorUpdateTemplate> push_template_;
  Owned<VkPipeline> pipeline_;
};

// Bytes of push constants that a kernel takes: its constants and a distance a binding.
constexpr uint32_t PushBytes(uint32_t constant_bytes, uint32_t binding_count) {
  return constant_bytes + binding_count * static_cast<uint32_t>(sizeof(uint32_t));
}

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_KERNEL_H_
