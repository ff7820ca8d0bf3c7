// MemoryAllocator: device memory in blocks, of which buffers take pieces.
//
// A driver hands out memory slowly and only so many times, so pieces share blocks of 64 MiB; a
// piece larger than half a block has a block of its own, which goes back with it. One empty block
// of each memory type is kept for the next piece.
#ifndef ASSAY_GPU_VULKAN_MEMORY_H_
#define ASSAY_GPU_VULKAN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/vulkan/device.h"

namespace assay::gpu::vulkan {

enum class MemoryUse : uint8_t {
  kDevice,   // Only the device touches it.
  kUnified,  // Device memory that the host maps, coherent.
  kStaging,  // The host's memory, mapped and coherent, that the device copies from and to.
};

class MemoryAllocator;
struct MemoryBlock;

// Bytes of a block, given back when this goes.
class MemoryPiece final {
 public:
  MemoryPiece() = default;
  MemoryPiece(MemoryPiece&& other) noexcept;
  MemoryPiece& operator=(MemoryPiece&& other) noexcept;
  ~MemoryPiece() { Free(); }

  VkDeviceMemory memory() const;
  uint64_t offset() const { return offset_; }
  // Its first byte for the host; null where it is not mapped.
  std::byte* mapped() const;

 private:
  friend class MemoryAllocator;
  MemoryPiece(MemoryAllocator* allocator, MemoryBlock* block, uint64_t offset, uint64_t size_bytes)
      : allocator_(allocator), block_(block), offset_(offset), size_bytes_(size_bytes) {}
  void Free();

  MemoryAllocator* allocator_ = nullptr;
  MemoryBlock* block_ = nullptr;
  uint64_t offset_ = 0;
  uint64_t size_bytes_ = 0;
};

// Thread-safe. Must outlive its pieces.
class MemoryAllocator final {
 public:
  explicit MemoryAllocator(const LogicalDevice* device);
  ~MemoryAllocator();
  MemoryAllocator(const MemoryAllocator&) = delete;
  MemoryAllocator& operator=(const MemoryAllocator&) = delete;

  // Error kAllocation, naming `label`, when the device has no more; the contents are whatever was
  // there.
  Result<MemoryPiece> Allocate(const VkMemoryRequirements& wanted, MemoryUse use,
                               std::string_view label);

  // Taken from the driver.
  uint64_t block_bytes() const;

 private:
  friend class MemoryPiece;
  Result<uint32_t> PickType(uint32_t allowed, MemoryUse use, std::string_view label) const;
  Result<MemoryBlock*> AddBlock(uint32_t type, uint64_t size_bytes, bool map,
                                std::string_view label);
  void Free(MemoryBlock* block, uint64_t offset, uint64_t size_bytes);

  const LogicalDevice* device_;
  mutable std::mutex mutex_;  // Guards the blocks.
  std::vector<std::unique_ptr<MemoryBlock>> blocks_;
};

}  // namespace assay::gpu::vulkan

#endif  // ASSAY_GPU_VULKAN_MEMORY_H_
