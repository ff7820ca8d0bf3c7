// VulkanQueue: a stream of command buffers, which shares the device's queue with the others.
#ifndef ASSAY_GPU_VULKAN_QUEUE_H_
#define ASSAY_GPU_VULKAN_QUEUE_H_

#include <deque>
#include <memory>

#include "assay/base.h"

#include "gpu/backend.h"
#include "gpu/vulkan/command_buffer.h"
#include "gpu/vulkan/device.h"
#include "gpu/vulkan/submit_queue.h"

namespace assay::gpu::vulkan {

class VulkanQueue final : public BackendQueue {
 public:
  VulkanQueue(const LogicalDevice* device, SubmitQueue* queue)
      : device_(device), queue_(queue), spare_(device) {}
  ~VulkanQueue() override;

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override;
  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override;
  Status Wait(Serial serial) override;

 private:
  // Makes the slots of all that has passed spare.
  void Reclaim();

  const LogicalDevice* device_;
  SubmitQueue* queue_;
  SpareSlots spare_;
  Serial passed_ = 0;
  std::deque<std::unique_ptr<CommandSlot>> running_;  // From serial passed_ + 1.
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_QUEUE_H_
