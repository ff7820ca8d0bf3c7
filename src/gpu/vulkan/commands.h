// Commands: a Vulkan command buffer with the pool that it alone comes from.
#ifndef ASSAY_GPU_VULKAN_COMMANDS_H_
#define ASSAY_GPU_VULKAN_COMMANDS_H_

#include <string_view>

#include "assay/base.h"

#include "gpu/vulkan/device.h"

namespace assay::gpu::vulkan {

// Stages of the pipeline and what they access.
struct StageAccess {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags access = 0;
};

// Recorded again and again, each time for one submission, which the queue must have passed before
// the next. One thread. In its errors `subject` is the name of what failed, and `doing` the
// sentence that says so.
class Commands final {
 public:
  // Empty.
  Commands() = default;
  static Result<Commands> Create(const LogicalDevice& device, std::string_view subject,
                                 std::string_view doing);

  // Null when empty.
  VkCommandBuffer handle() const { return handle_; }
  Status Begin(std::string_view subject, std::string_view doing);
  // What follows sees what `from` wrote before.
  void Barrier(const StageAccess& from, const StageAccess& to);
  Status End(std::string_view subject, std::string_view doing);

 private:
  const LogicalDevice* device_ = nullptr;
  Owned<VkCommandPool> pool_;
  VkCommandBuffer handle_ = VK_NULL_HANDLE;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_COMMANDS_H_
