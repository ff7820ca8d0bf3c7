#include "gpu/cpu/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_memory.h"

namespace assay::gpu {
namespace {

constexpr std::align_val_t kAlignment{64};

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)); }

tl::unexpected<Error> NoMemory(uint64_t size_bytes, const std::string& label) {
  const HostMemory host = ReadHostMemory();
  return Fail(ErrorCode::kAllocation, label,
              fmt::format("Memory for buffer \"{}\" ({} bytes) cannot be allocated; the program "
                          "can still get {} bytes of {}{}.",
                          label, size_bytes, host.free_bytes, host.total_bytes,
                          host.limited ? ", which ulimit -v sets" : ""));
}

void FreeSmall(std::byte* block) { ::operator delete(block, kAlignment); }

}  // namespace

MemoryPool::~MemoryPool() {
  for (const std::vector<Waiting>& blocks : waiting_) {
    for (const Waiting& waiting : blocks) FreeSmall(waiting.block);
  }
}

size_t MemoryPool::ClassOf(uint64_t size_bytes) {
  const uint64_t units = RoundUp(std::max<uint64_t>(size_bytes, 1), kUnitBytes) / kUnitBytes;
  if (units <= kSteps) return static_cast<size_t>(units) - 1;
  // units lies in (8 << doubling, 16 << doubling], which is cut into steps of 1 << doubling.
  const auto doubling = static_cast<uint64_t>(std::bit_width(units - 1)) - 4;
  const uint64_t steps = RoundUp(units, uint64_t{1} << doubling) >> doubling;
  return static_cast<size_t>(doubling * kSteps + steps - 1);
}

uint64_t MemoryPool::BytesOf(size_t size_class) {
  if (size_class < kSteps) return (size_class + 1) * kUnitBytes;
  const size_t doubling = size_class / kSteps - 1;
  return (uint64_t{size_class % kSteps + kSteps + 1} << doubling) * kUnitBytes;
}

Result<std::byte*> MemoryPool::Allocate(uint64_t size_bytes, const std::string& label) {
  // The system may promise more than it has and end the program later, when the pages are touched.
  if (size_bytes < kLargeBytes) return AllocateSmall(size_bytes, label);
  if (size_bytes > ReadHostMemory().total_bytes) return NoMemory(size_bytes, label);
  return AllocateLarge(size_bytes, label);
}

Result<std::byte*> MemoryPool::AllocateLarge(uint64_t size_bytes, const std::string& label) {
  // Room for an aligned start; what lies around the block is unmapped. The block's own end is that
  // of a page: a huge page behind it would be memory that nobody uses.
  const uint64_t wanted = RoundUp(size_bytes, PageBytes());
  const uint64_t mapped = wanted + kLargeBytes;
  void* const start =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NoMemory(size_bytes, label);
  std::byte* const first = static_cast<std::byte*>(start);
  const uint64_t misaligned = reinterpret_cast<uintptr_t>(first) % kLargeBytes;
  const uint64_t before = misaligned == 0 ? 0 : kLargeBytes - misaligned;
  std::byte* const block = first + before;
  if (before > 0) munmap(first, before);
  munmap(block + wanted, mapped - before - wanted);
  // Only advice: without huge pages everything works, a little slower.
  madvise(block, wanted, MADV_HUGEPAGE);
  return block;
}

Result<std::byte*> MemoryPool::AllocateSmall(uint64_t size_bytes, const std::string& label) {
  const size_t size_class = ClassOf(size_bytes);
  const uint64_t block_bytes = BytesOf(size_class);
  Waiting reused{nullptr, {}};
  {
    const std::lock_guard lock(mutex_);
    std::vector<Waiting>& blocks = waiting_[size_class];
    if (!blocks.empty()) {
      reused = std::move(blocks.back());
      blocks.pop_back();
      waiting_bytes_ -= block_bytes;
    }
  }
  if (reused.block == nullptr) {
    void* const fresh = ::operator new(block_bytes, kAlignment, std::nothrow);
    if (fresh == nullptr) return NoMemory(size_bytes, label);
    std::memset(fresh, 0, block_bytes);
    return static_cast<std::byte*>(fresh);
  }
  if (poison_) {
    const std::byte* const end = reused.block + block_bytes;
    const std::byte* const written = std::find_if(reused.block, reused.block + block_bytes,
                                                  [](std::byte value) { return value != kPoison; });
    if (written != end) {
      const auto offset = written - reused.block;
      FreeSmall(reused.block);
      return Fail(ErrorCode::kDevice, reused.label,
                  fmt::format("Byte {} of buffer \"{}\" was written after the buffer's end.",
                              offset, reused.label));
    }
  }
  std::memset(reused.block, 0, block_bytes);
  return reused.block;
}

void MemoryPool::Free(std::byte* block, uint64_t size_bytes, const std::string& label) noexcept {
  if (size_bytes >= kLargeBytes) {
    munmap(block, RoundUp(size_bytes, PageBytes()));
    return;
  }
  const size_t size_class = ClassOf(size_bytes);
  const uint64_t block_bytes = BytesOf(size_class);
  if (poison_) std::memset(block, static_cast<int>(kPoison), block_bytes);
  try {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ + block_bytes <= kMaxWaitingBytes) {
      waiting_[size_class].push_back({block, label});
      waiting_bytes_ += block_bytes;
      return;
    }
  } catch (const std::bad_alloc&) {
    // No memory to keep it in mind.
  }
  FreeSmall(block);
}

}  // namespace assay::gpu
