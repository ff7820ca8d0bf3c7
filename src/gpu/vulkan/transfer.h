// Transfer: fills buffers with zeros and copies bytes between them and the host where the host
// cannot map them, through a few staging pieces that several threads use at once.
#ifndef ASSAY_GPU_VULKAN_TRANSFER_H_
#define ASSAY_GPU_VULKAN_TRANSFER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/vulkan/device.h"
#include "gpu/vulkan/memory.h"
#include "gpu/vulkan/submit_queue.h"

namespace assay::gpu::vulkan {

// The last copy that uses a buffer, which must live until the queue has passed it. Thread-safe.
class LastCopy final {
 public:
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  void Note(uint64_t value) {
    uint64_t known = value_.load(std::memory_order_relaxed);
    while (known < value &&
           !value_.compare_exchange_weak(known, value, std::memory_order_release)) {
    }
  }

 private:
  std::atomic<uint64_t> value_{0};  // 0: none.
};

// A buffer as copies see it.
struct CopyTarget {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::string_view label;
  LastCopy* last = nullptr;  // Told of each submission, also when a later step fails.
};

// Thread-safe. What it does is ordered with everything else that the queue runs, by the order of
// the calls.
class Transfer final {
 public:
  Transfer(const LogicalDevice* device, MemoryAllocator* memory, SubmitQueue* queue);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Status FillWithZeros(const CopyTarget& target);
  // Returns when `bytes` may change; later work sees them in the buffer.
  Status Write(const CopyTarget& target, uint64_t offset, std::span<const std::byte> bytes);
  // Returns when `bytes` hold the buffer's.
  Status Read(const CopyTarget& target, uint64_t offset, std::span<std::byte> bytes);

 private:
  struct Slot;
  class SlotScope;

  // A slot that nobody uses and whose last copy has passed; waits for one.
  Result<Slot*> Acquire(std::string_view label);
  void Release(Slot* slot);
  Status Open(Slot* slot, std::string_view label);
  // Runs what `record` puts into the slot's command buffer, between barriers against all else.
  Status Submit(Slot* slot, const CopyTarget& target,
                const std::function<void(VkCommandBuffer)>& record);

  const LogicalDevice* device_;
  MemoryAllocator* memory_;
  SubmitQueue* queue_;
  std::mutex mutex_;  // Guards the slots' being free.
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_TRANSFER_H_
