// VulkanQueue: a stream of command buffers, which shares the device's queue with the others.
#ifndef ASSAY_GPU_VULKAN_QUEUE_H_
#define ASSAY_GPU_VULKAN_QUEUE_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "assay/base.h"

#include "gpu/backend.h"
#include "gpu/vulkan/command_buffer.h"
#include "gpu/vulkan/device.h"
#include "gpu/vulkan/submit_queue.h"

namespace assay::gpu::vulkan {

// A device that is the processor itself, or shares its memory, may compute for seconds on one
// command buffer, and nothing takes back what it has been given. Where `cancelled` is there to be
// asked, such a device gets a command buffer in slices, one at a time: the first at the commit,
// the others inside Wait.
class VulkanQueue final : public BackendQueue {
 public:
  VulkanQueue(const LogicalDevice* device, SubmitQueue* queue,
              std::function<bool()> cancelled = {});
  ~VulkanQueue() override;

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override;
  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override;
  Status Wait(Serial serial) override;

 private:
  using Slots = std::deque<std::unique_ptr<CommandSlot>>;

  bool stopped() const { return cancelled_ && cancelled_(); }
  // Makes the slots of all that has passed spare.
  void Reclaim();
  bool HasRoom() const;
  // The first of what waits.
  Status SubmitFront();
  // Of the submission after which Wait has something to do or is done.
  uint64_t ValueToWaitFor(Serial serial) const;
  void DropWaiting();
  // Returns when nothing runs.
  void DrainRunning();

  const LogicalDevice* device_;
  SubmitQueue* queue_;
  const std::function<bool()> cancelled_;
  const uint64_t slice_workgroups_;
  SpareSlots spare_;
  Serial committed_ = 0;
  Serial passed_ = 0;
  Slots running_;  // Submitted, in this order.
  Slots waiting_;  // Committed behind them.
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_QUEUE_H_
