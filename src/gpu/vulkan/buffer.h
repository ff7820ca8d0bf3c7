// VulkanBuffer: one VkBuffer with its piece of memory, and what makes them.
#ifndef ASSAY_GPU_VULKAN_BUFFER_H_
#define ASSAY_GPU_VULKAN_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "assay/base.h"
#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/vulkan/device.h"
#include "gpu/vulkan/memory.h"
#include "gpu/vulkan/submit_queue.h"
#include "gpu/vulkan/transfer.h"

namespace assay::gpu::vulkan {

class BufferMaker;

// Bytes of the device. Dispatches that use it have passed when it goes; copies that the backend
// makes by itself may not have, and keep the memory until then.
class VulkanBuffer final : public BackendBuffer {
 public:
  ~VulkanBuffer() override;

  VkBuffer handle() const { return storage_.buffer.get(); }
  const std::string& label() const { return label_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Its first byte for the host; null where the device's memory is its own.
  std::byte* mapped() const { return storage_.memory.mapped(); }

 private:
  friend class BufferMaker;
  struct Storage {
    MemoryPiece memory;
    Owned<VkBuffer> buffer;
  };
  VulkanBuffer(BufferMaker* maker, const BufferDesc& desc)
      : maker_(maker), label_(desc.label), size_bytes_(desc.size_bytes) {}

  CopyTarget target() { return {handle(), label_, &last_copy_}; }

  BufferMaker* maker_;
  std::string label_;
  uint64_t size_bytes_;
  Storage storage_;
  LastCopy last_copy_;
};

// Thread-safe. Must outlive its buffers.
class BufferMaker final {
 public:
  BufferMaker(const LogicalDevice* device, SubmitQueue* queue);
  ~BufferMaker();
  BufferMaker(const BufferMaker&) = delete;
  BufferMaker& operator=(const BufferMaker&) = delete;

  // From here on buffers lie in memory that the host maps, the host's own where the device's cannot
  // be mapped. Called before anything is made.
  void MapEverything() { map_everything_ = true; }

  // Zero-filled.
  Result<std::unique_ptr<VulkanBuffer>> Make(const BufferDesc& desc);
  Status Write(VulkanBuffer* buffer, uint64_t offset, std::span<const std::byte> bytes);
  Status Read(VulkanBuffer* buffer, uint64_t offset, std::span<std::byte> bytes);

 private:
  friend class VulkanBuffer;
  struct Retired {
    uint64_t value = 0;
    VulkanBuffer::Storage storage;
  };

  MemoryUse UseFor(const BufferDesc& desc) const;
  void Retire(uint64_t value, VulkanBuffer::Storage storage);
  void FreeRetired();

  const LogicalDevice* device_;
  SubmitQueue* queue_;
  bool map_everything_ = false;
  MemoryAllocator memory_;
  Transfer transfer_;
  std::mutex mutex_;  // Guards what follows.
  std::deque<Retired> retired_;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_BUFFER_H_
