#include "gpu/vulkan/submit_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace assay::gpu::vulkan {

Result<std::unique_ptr<SubmitQueue>> SubmitQueue::Create(const LogicalDevice* device) {
  std::unique_ptr<SubmitQueue> queue(new SubmitQueue(device));
  if (device->uses(OptionalPath::kTimelineSemaphores)) {
    VkSemaphoreTypeCreateInfo type = {};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    info.pNext = &type;
    ASSAY_ASSIGN_OR_RETURN(
        queue->timeline_,
        Make<VkSemaphore>(*device, device->api().vkCreateSemaphore, info, "vkCreateSemaphore",
                          device->physical().name, "A timeline semaphore cannot be made"));
  }
  return queue;
}

SubmitQueue::~SubmitQueue() { WaitIdle(); }

void SubmitQueue::WaitIdle() {
  const std::lock_guard lock(mutex_);
  // It fails at once on a lost device, which runs nothing.
  device_->api().vkDeviceWaitIdle(device_->handle());
}

void SubmitQueue::Drain(uint64_t value) {
  if (value != 0 && !Wait(value)) WaitIdle();
}

Result<uint64_t> SubmitQueue::Submit(VkCommandBuffer commands, std::string_view what) {
  const std::string& name = device_->physical().name;
  const std::string doing = fmt::format("{} cannot be submitted", what);
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  VkTimelineSemaphoreSubmitInfo timeline = {};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  const VkSemaphore semaphore = timeline_.get();
  std::shared_ptr<Fenced> fenced;
  if (timeline_) {
    info.pNext = &timeline;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &semaphore;
  } else {
    VkFenceCreateInfo fence_info = {};
    fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    fenced = std::make_shared<Fenced>();
    ASSAY_ASSIGN_OR_RETURN(fenced->fence, Make<VkFence>(*device_, device_->api().vkCreateFence,
                                                        fence_info, "vkCreateFence", name, doing));
  }
  const std::lock_guard lock(mutex_);
  if (device_->lost()) return Fail(device_->LostError());
  const uint64_t value = submitted_ + 1;
  timeline.pSignalSemaphoreValues = &value;
  ASSAY_TRY(device_->Try("vkQueueSubmit", name, doing, [&] {
    return device_->api().vkQueueSubmit(device_->queue(), 1, &info,
                                        fenced == nullptr ? VK_NULL_HANDLE : fenced->fence.get());
  }));
  submitted_ = value;
  if (fenced != nullptr) {
    fenced->value = value;
    fences_.push_back(std::move(fenced));
  }
  return value;
}

Status SubmitQueue::Wait(uint64_t value) {
  if (device_->lost()) return Fail(device_->LostError());
  Status waited = timeline_ ? WaitTimeline(value) : WaitFence(value);
  // What the program frees now is used by nothing.
  if (!waited && device_->lost()) WaitIdle();
  return waited;
}

Status SubmitQueue::WaitTimeline(uint64_t value) {
  const VkSemaphore semaphore = timeline_.get();
  VkSemaphoreWaitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore;
  info.pValues = &value;
  return device_->Try(
      "vkWaitSemaphores", device_->physical().name,
      "The end of the submitted work cannot be waited for",
      [&] { return device_->api().vkWaitSemaphores(device_->handle(), &info, UINT64_MAX); });
}

Status SubmitQueue::WaitFence(uint64_t value) {
  std::shared_ptr<Fenced> fenced;
  {
    const std::lock_guard lock(mutex_);
    if (value <= passed_) return {};
    const auto found = std::ranges::find_if(
        fences_, [&](const std::shared_ptr<Fenced>& other) { return other->value >= value; });
    if (found == fences_.end()) return {};
    fenced = *found;
  }
  const VkFence fence = fenced->fence.get();
  return device_->Try("vkWaitForFences", device_->physical().name,
                      "The end of the submitted work cannot be waited for", [&] {
                        return device_->api().vkWaitForFences(device_->handle(), 1, &fence, VK_TRUE,
                                                              UINT64_MAX);
                      });
}

uint64_t SubmitQueue::Passed() {
  if (device_->lost()) {
    WaitIdle();
    return std::numeric_limits<uint64_t>::max();
  }
  if (timeline_) {
    uint64_t value = 0;
    device_->api().vkGetSemaphoreCounterValue(device_->handle(), timeline_.get(), &value);
    return value;
  }
  const std::lock_guard lock(mutex_);
  while (!fences_.empty() && device_->api().vkGetFenceStatus(
                                 device_->handle(), fences_.front()->fence.get()) == VK_SUCCESS) {
    passed_ = fences_.front()->value;
    fences_.pop_front();
  }
  return passed_;
}

}  // namespace assay::gpu::vulkan
