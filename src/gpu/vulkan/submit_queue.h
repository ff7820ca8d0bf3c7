// SubmitQueue: the one VkQueue of the device, shared by everybody that runs work on it.
//
// Submissions get values that rise by one, and finish in that order for whoever waits: every
// command buffer begins with a barrier behind all that was submitted before.
#ifndef ASSAY_GPU_VULKAN_SUBMIT_QUEUE_H_
#define ASSAY_GPU_VULKAN_SUBMIT_QUEUE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/vulkan/device.h"

namespace assay::gpu::vulkan {

// Thread-safe. Its end waits for all that was submitted.
class SubmitQueue final {
 public:
  static Result<std::unique_ptr<SubmitQueue>> Create(const LogicalDevice* device);
  ~SubmitQueue();
  SubmitQueue(const SubmitQueue&) = delete;
  SubmitQueue& operator=(const SubmitQueue&) = delete;

  // Hands over an ended command buffer, which must live until the returned value has passed. On
  // failure nothing of it runs.
  Result<uint64_t> Submit(VkCommandBuffer commands, std::string_view what);
  // Returns when `value` has passed. Error kDevice when the device is lost; nothing runs then.
  Status Wait(uint64_t value);
  // The same for whoever is about to free what `value` uses: nothing of it runs afterwards, however
  // waiting went.
  void Drain(uint64_t value);
  // The last value that has passed; all of them when the device is lost.
  uint64_t Passed();

 private:
  // One submission where there are no timeline semaphores.
  struct Fenced {
    uint64_t value = 0;
    Owned<VkFence> fence;
  };

  explicit SubmitQueue(const LogicalDevice* device) : device_(device) {}
  // Returns when the driver runs nothing any more.
  void WaitIdle();
  Status WaitTimeline(uint64_t value);
  Status WaitFence(uint64_t value);

  const LogicalDevice* device_;
  Owned<VkSemaphore> timeline_;  // Empty: fences.
  std::mutex mutex_;             // Guards the VkQueue and the members that follow.
  uint64_t submitted_ = 0;
  uint64_t passed_ = 0;                         // As far as fences have told.
  std::deque<std::shared_ptr<Fenced>> fences_;  // Of the values above passed_, rising.
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_SUBMIT_QUEUE_H_
