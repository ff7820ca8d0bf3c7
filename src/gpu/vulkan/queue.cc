#include "gpu/vulkan/queue.h"

#include <utility>

namespace assay::gpu::vulkan {
namespace {

// Behind so many workgroups a command buffer is cut: few enough that a slice is one dispatch of a
// pass over a long prompt, many enough that decoding pays for few submissions more.
constexpr uint64_t kSliceWorkgroups = 512;

uint64_t SliceWorkgroups(const LogicalDevice& device, bool may_be_stopped) {
  const VkPhysicalDeviceType type = device.physical().type;
  const bool slow =
      type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  return may_be_stopped && slow ? kSliceWorkgroups : 0;
}

}  // namespace

VulkanQueue::VulkanQueue(const LogicalDevice* device, SubmitQueue* queue,
                         std::function<bool()> cancelled)
    : device_(device),
      queue_(queue),
      cancelled_(std::move(cancelled)),
      slice_workgroups_(SliceWorkgroups(*device, cancelled_ != nullptr)),
      spare_(device) {}

VulkanQueue::~VulkanQueue() {
  // What was committed runs, also when nobody waits for it.
  if (!waiting_.empty()) (void)VulkanQueue::Wait(committed_);
  DrainRunning();
}

void VulkanQueue::Reclaim() {
  if (running_.empty()) return;
  const uint64_t passed = queue_->Passed();
  while (!running_.empty() && running_.front()->value <= passed) {
    if (running_.front()->last) ++passed_;
    spare_.Put(std::move(running_.front()));
    running_.pop_front();
  }
}

bool VulkanQueue::HasRoom() const { return slice_workgroups_ == 0 || running_.empty(); }

Status VulkanQueue::SubmitFront() {
  ASSAY_ASSIGN_OR_RETURN(waiting_.front()->value,
                         queue_->Submit(waiting_.front()->commands.handle(), "A command buffer"));
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return {};
}

uint64_t VulkanQueue::ValueToWaitFor(Serial serial) const {
  // With more to submit, room for it.
  if (!waiting_.empty()) return running_.front()->value;
  Serial ended = passed_;
  for (const std::unique_ptr<CommandSlot>& slot : running_) {
    if (slot->last && ++ended == serial) return slot->value;
  }
  return running_.back()->value;
}

void VulkanQueue::DropWaiting() {
  for (; !waiting_.empty(); waiting_.pop_front()) spare_.Put(std::move(waiting_.front()));
}

void VulkanQueue::DrainRunning() {
  if (!running_.empty()) queue_->Drain(running_.back()->value);
  for (; !running_.empty(); running_.pop_front()) spare_.Put(std::move(running_.front()));
}

Result<std::unique_ptr<BackendCommandBuffer>> VulkanQueue::Begin() {
  Reclaim();
  return VulkanCommandBuffer::Begin(device_, &spare_, slice_workgroups_);
}

Result<Serial> VulkanQueue::Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) {
  std::vector<std::unique_ptr<CommandSlot>> slots =
      static_cast<VulkanCommandBuffer*>(command_buffer.get())->Take();
  const bool at_once = waiting_.empty() && HasRoom();
  for (std::unique_ptr<CommandSlot>& slot : slots) waiting_.push_back(std::move(slot));
  if (at_once) {
    if (Status submitted = SubmitFront(); !submitted) {
      DropWaiting();
      return Fail(std::move(submitted).error());
    }
  }
  return ++committed_;
}

Status VulkanQueue::Wait(Serial serial) {
  while (passed_ < serial) {
    if (stopped()) {
      DropWaiting();
      DrainRunning();
      passed_ = committed_;
      return Fail(StoppedError());
    }
    while (!waiting_.empty() && HasRoom()) ASSAY_TRY(SubmitFront());
    ASSAY_TRY(queue_->Wait(ValueToWaitFor(serial)));
    Reclaim();
  }
  return {};
}

}  // namespace assay::gpu::vulkan
