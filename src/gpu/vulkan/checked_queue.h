// CheckedQueue: the queue of a checked device, which proves that a dispatch touches what it
// declares and nothing else (E6).
#ifndef ASSAY_GPU_VULKAN_CHECKED_QUEUE_H_
#define ASSAY_GPU_VULKAN_CHECKED_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/backend.h"
#include "gpu/check/bound_bytes.h"
#include "gpu/check/dispatch_images.h"
#include "gpu/vulkan/buffer.h"
#include "gpu/vulkan/device.h"
#include "gpu/vulkan/queue.h"
#include "gpu/vulkan/submit_queue.h"

namespace assay::gpu::vulkan {

// A dispatch as it was encoded.
struct CheckedDispatch {
  BackendKernel* kernel = nullptr;
  std::vector<BackendBinding> bindings;
  std::vector<std::byte> constants;
  Extent3 grid;
};

// What is committed runs inside Wait, on that thread: one dispatch after another, each twice, on
// copies of what it binds with filler around them (check/access_image.h), the second time over
// other filler. Buffers must lie in memory that the host maps.
//
// What a shader that asks for the length of a binding does behind its end is seen only as far as
// the driver lets it happen; others find filler there as well.
class CheckedQueue final : public BackendQueue {
 public:
  // `cancelled`, where there is one, is asked before each dispatch.
  CheckedQueue(const LogicalDevice* device, SubmitQueue* queue, BufferMaker* buffers,
               std::function<bool()> cancelled);
  ~CheckedQueue() override;

  Result<std::unique_ptr<BackendCommandBuffer>> Begin() override;
  Result<Serial> Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) override;
  Status Wait(Serial serial) override;

 private:
  class CommandBuffer;
  using Commands = std::vector<CheckedDispatch>;

  Status RunCommands(const Commands& commands, uint64_t number);
  Status RunDispatch(const CheckedDispatch& dispatch);
  // Runs it on `copy` of the images.
  Status RunOn(int copy, FillerRange filler, const CheckedDispatch& dispatch);
  Status FitScratch();

  const LogicalDevice* device_;
  BufferMaker* buffers_;
  const std::function<bool()> cancelled_;
  VulkanQueue queue_;
  Serial finished_ = 0;
  std::deque<Commands> committed_;  // From serial finished_ + 1.
  std::vector<BoundBytes> bound_;
  DispatchImages images_;
  // Where the device finds the images; at least as many, and as large.
  std::vector<std::unique_ptr<VulkanBuffer>> scratch_;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_CHECKED_QUEUE_H_
