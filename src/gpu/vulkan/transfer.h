// Transfer: fills buffers with zeros and copies bytes between them and the host where the host
// cannot map them, through a few staging pieces that several threads use at once.
#ifndef ASSAY_GPU_VULKAN_TRANSFER_H_
#define ASSAY_GPU_VULKAN_TRANSFER_H_

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

// Thread-safe. What it does is ordered with everything else that the queue runs, by the order of
// the calls. Buffers that a Fill or Write uses must live until the returned value has passed.
class Transfer final {
 public:
  Transfer(const LogicalDevice* device, MemoryAllocator* memory, SubmitQueue* queue);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Result<uint64_t> FillWithZeros(VkBuffer buffer, std::string_view label);
  // Returns when `bytes` may change; later work sees them in the buffer.
  Result<uint64_t> Write(VkBuffer buffer, uint64_t offset, std::span<const std::byte> bytes,
                         std::string_view label);
  // Returns when `bytes` hold the buffer's.
  Status Read(VkBuffer buffer, uint64_t offset, std::span<std::byte> bytes, std::string_view label);

 private:
  struct Slot;
  class SlotScope;

  // A slot that nobody uses and whose last copy has passed; waits for one.
  Result<Slot*> Acquire(std::string_view label);
  void Release(Slot* slot);
  Status Open(Slot* slot, std::string_view label);
  // Runs what `record` puts into the slot's command buffer, between barriers against all else.
  Result<uint64_t> Submit(Slot* slot, std::string_view label,
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
