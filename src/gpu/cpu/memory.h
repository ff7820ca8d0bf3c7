// Memory for the buffers of the cpu backend.
#ifndef ASSAY_GPU_CPU_MEMORY_H_
#define ASSAY_GPU_CPU_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "assay/base.h"

namespace assay::gpu {

// Hands out zero-filled blocks (E11). A block below 2 MiB comes from a small pool by size class and
// is aligned to 64 bytes; a larger one is mapped by itself, aligned to 2 MiB and advised to use
// huge pages, which the kernel fills with zeros. A class is at most an eighth larger than what is
// asked for, and a mapping at most a page, so that the weights of a model take little more memory
// than its file. Thread-safe.
//
// A block goes through three states: in use, waiting for reuse, in use again. When poisoning is on
// it holds kPoison while it waits, so that a stale reader sees neither old data nor zeros; and
// whoever wrote to it meanwhile is found out when it is handed out again. It is cleared after that,
// so a buffer starts with zeros either way.
class MemoryPool final {
 public:
  static constexpr std::byte kPoison{0xA5};
  static constexpr uint64_t kLargeBytes = uint64_t{2} << 20;
  // Above this much waiting memory, blocks go back to the system.
  static constexpr uint64_t kMaxWaitingBytes = uint64_t{32} << 20;

  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  // Every block must have come back.
  ~MemoryPool();

  void EnablePoison() { poison_ = true; }

  // Errors: kAllocation when the machine does not have the memory; kDevice when poison was
  // overwritten while the block waited, naming the buffer it was.
  Result<std::byte*> Allocate(uint64_t size_bytes, const std::string& label);
  // `label` is the buffer that the block was, for the message.
  void Free(std::byte* block, uint64_t size_bytes, const std::string& label) noexcept;

  uint64_t waiting_bytes() const {
    const std::lock_guard lock(mutex_);
    return waiting_bytes_;
  }

 private:
  struct Waiting {
    std::byte* block;
    std::string label;
  };
  // Blocks of 1 to 8 units, then eight sizes for each doubling, up to kLargeBytes.
  static constexpr uint64_t kUnitBytes = 64;
  static constexpr size_t kSteps = 8;
  static constexpr size_t kClasses = kSteps * 13;
  static size_t ClassOf(uint64_t size_bytes);
  static uint64_t BytesOf(size_t size_class);
  Result<std::byte*> AllocateLarge(uint64_t size_bytes, const std::string& label);
  Result<std::byte*> AllocateSmall(uint64_t size_bytes, const std::string& label);

  bool poison_ = false;
  mutable std::mutex mutex_;
  // Guarded by mutex_, as is the sum.
  std::array<std::vector<Waiting>, kClasses> waiting_;
  uint64_t waiting_bytes_ = 0;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_MEMORY_H_
