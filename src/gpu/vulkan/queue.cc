#include "gpu/vulkan/queue.h"

#include <utility>

namespace assay::gpu::vulkan {

VulkanQueue::~VulkanQueue() {
  if (!running_.empty()) queue_->Drain(running_.back()->value);
}

void VulkanQueue::Reclaim() {
  if (running_.empty()) return;
  const uint64_t passed = queue_->Passed();
  while (!running_.empty() && running_.front()->value <= passed) {
    spare_.Put(std::move(running_.front()));
    running_.pop_front();
    ++passed_;
  }
}

Result<std::unique_ptr<BackendCommandBuffer>> VulkanQueue::Begin() {
  Reclaim();
  return VulkanCommandBuffer::Begin(device_, &spare_);
}

Result<Serial> VulkanQueue::Commit(std::unique_ptr<BackendCommandBuffer> command_buffer) {
  std::unique_ptr<CommandSlot> slot =
      static_cast<VulkanCommandBuffer*>(command_buffer.get())->Take();
  const Result<uint64_t> value = queue_->Submit(slot->commands.handle(), "A command buffer");
  if (!value) {
    spare_.Put(std::move(slot));
    return Fail(value.error());
  }
  slot->value = *value;
  running_.push_back(std::move(slot));
  return passed_ + running_.size();
}

Status VulkanQueue::Wait(Serial serial) {
  if (serial <= passed_) return {};
  ASSAY_TRY(queue_->Wait(running_[serial - passed_ - 1]->value));
  Reclaim();
  return {};
}

}  // namespace assay::gpu::vulkan
