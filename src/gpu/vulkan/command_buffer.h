// VulkanCommandBuffer: one VkCommandBuffer in recording, which is the concurrent encoder.
#ifndef ASSAY_GPU_VULKAN_COMMAND_BUFFER_H_
#define ASSAY_GPU_VULKAN_COMMAND_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "assay/base.h"

#include "gpu/backend.h"
#include "gpu/vulkan/commands.h"
#include "gpu/vulkan/descriptors.h"
#include "gpu/vulkan/device.h"
#include "gpu/vulkan/kernel.h"

namespace assay::gpu::vulkan {

// What one recording needs, used again when the queue has passed it.
struct CommandSlot {
  explicit CommandSlot(const LogicalDevice* device) : descriptors(device) {}
  Commands commands;
  DescriptorSets descriptors;
  uint64_t value = 0;  // Of its submission.
  bool last = false;   // Of its command buffer.
};

// Slots of one queue that wait to be recorded into again. Used by the queue's thread.
class SpareSlots final {
 public:
  explicit SpareSlots(const LogicalDevice* device) : device_(device) {}
  Result<std::unique_ptr<CommandSlot>> Take();
  void Put(std::unique_ptr<CommandSlot> slot) { slots_.push_back(std::move(slot)); }
  // Whether the queue has not met this pipeline yet, and from now on has.
  bool IsFirstUse(VkPipeline pipeline) { return used_.insert(pipeline).second; }

 private:
  const LogicalDevice* device_;
  std::vector<std::unique_ptr<CommandSlot>> slots_;
  std::unordered_set<VkPipeline> used_;
};

// Error kUnsupported, with both, for a grid larger than the device's limit.
Status CheckGrid(const LogicalDevice& device, const BackendDispatch& dispatch);

class VulkanCommandBuffer final : public BackendCommandBuffer {
 public:
  // Begins the recording behind all that was submitted before. Behind every `slice_workgroups` or
  // more, and behind a kernel's first use, when some drivers compile it, another Vulkan command
  // buffer is begun, so that the rest can be left out; 0: never.
  static Result<std::unique_ptr<VulkanCommandBuffer>> Begin(const LogicalDevice* device,
                                                            SpareSlots* spare,
                                                            uint64_t slice_workgroups);
  ~VulkanCommandBuffer() override;

  Status Dispatch(const BackendDispatch& dispatch) override;
  // One memory barrier from compute to compute.
  Status Barrier() override;
  Status EndEncoding() override;

  // Binds that much more before each view, and behind it where the shader asks for no lengths, so
  // that what strays there is seen; the buffers have room for it.
  void set_margin_bytes(uint64_t margin_bytes) { margin_bytes_ = margin_bytes; }

  // What was recorded, to be submitted in this order; the command buffer is then empty.
  std::vector<std::unique_ptr<CommandSlot>> Take() { return std::move(slots_); }

 private:
  VulkanCommandBuffer(const LogicalDevice* device, SpareSlots* spare, uint64_t slice_workgroups)
      : device_(device), spare_(spare), slice_workgroups_(slice_workgroups) {}
  // Goes on in another Vulkan command buffer.
  Status BeginSlice();
  // Fills infos_ and push_ from the dispatch.
  Status TranslateBindings(const BackendDispatch& dispatch, const VulkanKernel& kernel);
  Status Bind(const VulkanKernel& kernel);

  const LogicalDevice* device_;
  SpareSlots* spare_;
  const uint64_t slice_workgroups_;
  uint64_t workgroups_ = 0;  // Of the current slice.
  std::vector<std::unique_ptr<CommandSlot>> slots_;
  CommandSlot* slot_ = nullptr;  // The last of them, which is recorded.
  uint64_t margin_bytes_ = 0;
  VkPipeline bound_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorBufferInfo> infos_;
  std::vector<VkWriteDescriptorSet> writes_;  // Without push descriptors.
  std::vector<std::byte> push_;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_COMMAND_BUFFER_H_
