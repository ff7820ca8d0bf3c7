#include "gpu/check/guarded_memory.h"

#include <bit>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace assay::gpu {

uint64_t GuardedMemory::PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)); }

GuardedMemory::~GuardedMemory() { Unmap(); }

void GuardedMemory::Unmap() {
  if (data_ != nullptr) munmap(data_ - kGuardBytes, reserved_bytes_ + 2 * kGuardBytes);
  data_ = nullptr;
  size_bytes_ = 0;
  reserved_bytes_ = 0;
}

Status GuardedMemory::Resize(uint64_t size_bytes) {
  if (size_bytes == size_bytes_ && data_ != nullptr) return {};
  if (data_ == nullptr || size_bytes > reserved_bytes_) {
    Unmap();
    const uint64_t reserved = std::bit_ceil(size_bytes);
    void* const start = mmap(nullptr, reserved + 2 * kGuardBytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start != MAP_FAILED) {
      data_ = static_cast<std::byte*>(start) + kGuardBytes;
      reserved_bytes_ = reserved;
    }
  }
  // What a smaller size leaves over becomes part of the guard.
  const bool resized = data_ != nullptr &&
                       mprotect(data_, size_bytes, PROT_READ | PROT_WRITE) == 0 &&
                       (size_bytes >= size_bytes_ ||
                        mprotect(data_ + size_bytes, size_bytes_ - size_bytes, PROT_NONE) == 0);
  if (!resized) {
    Unmap();
    return Fail(ErrorCode::kAllocation, "",
                fmt::format("Memory ({} bytes) to check a dispatch in, and {} bytes of addresses "
                            "around it, cannot be reserved; a checked device needs both.",
                            size_bytes, 2 * kGuardBytes));
  }
  size_bytes_ = size_bytes;
  return {};
}

std::optional<int64_t> GuardedMemory::OffsetOf(const std::byte* address) const {
  if (data_ == nullptr) return std::nullopt;
  // Addresses, since the pointers may belong to different objects.
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) -
                                           reinterpret_cast<uintptr_t>(data_));
  const auto end = static_cast<int64_t>(reserved_bytes_ + kGuardBytes);
  if (offset < -static_cast<int64_t>(kGuardBytes) || offset >= end) return std::nullopt;
  return offset;
}

void GuardedMemory::AllowReads(bool allowed) {
  if (data_ == nullptr) return;
  const int protection = allowed ? PROT_READ : PROT_NONE;
  mprotect(data_ - kGuardBytes, kGuardBytes, protection);
  mprotect(data_ + size_bytes_, reserved_bytes_ - size_bytes_ + kGuardBytes, protection);
}

}  // namespace assay::gpu
