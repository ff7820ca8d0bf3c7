// Memory between wide bands of addresses that nobody may touch.
#ifndef ASSAY_GPU_CHECK_GUARDED_MEMORY_H_
#define ASSAY_GPU_CHECK_GUARDED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "assay/base.h"

namespace assay::gpu {

// Some pages with kGuardBytes of reserved addresses on either side, which take no memory: an access
// that strays there is a fault of the processor, whatever lies next to this memory. One thread.
class GuardedMemory final {
 public:
  // As far as an unsigned 32-bit offset reaches.
  static constexpr uint64_t kGuardBytes = uint64_t{4} << 30;
  // What sizes are multiples of.
  static uint64_t PageBytes();

  GuardedMemory() = default;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  // Makes exactly `size_bytes`, a multiple of PageBytes(), accessible; their contents are
  // unspecified. Error kAllocation when the system has no such addresses.
  Status Resize(uint64_t size_bytes);
  std::byte* data() const { return data_; }

  // How far `address` lies from data(), negative before it, when it lies in the memory or its
  // guards.
  std::optional<int64_t> OffsetOf(const std::byte* address) const;
  // Whether reads of the guards are let through, which gives zeros; at first they are not.
  void AllowReads(bool allowed);

 private:
  void Unmap();

  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
  uint64_t reserved_bytes_ = 0;  // Between the guards; at least size_bytes_.
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CHECK_GUARDED_MEMORY_H_
