// What a dispatch sees when it is checked: copies of the bytes that it binds, with filler in place
// of all that it must not read.
#ifndef ASSAY_GPU_CHECK_ACCESS_IMAGE_H_
#define ASSAY_GPU_CHECK_ACCESS_IMAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/base.h"

#include "gpu/check/bound_bytes.h"
#include "gpu/check/guarded_memory.h"

namespace assay::gpu {

// Bytes on either side of what is bound that hold filler; behind them lie guards.
inline constexpr uint64_t kMarginBytes = 4096;

// Copies of a dispatch's bytes: of the two runs that are compared, and of those that look closer.
inline constexpr int kFirstCopy = 0;
inline constexpr int kSecondCopy = 1;
inline constexpr int kProbeCopy = 2;
inline constexpr size_t kCopies = 3;

// Which filler a run has: of the second kind in [vary_begin, vary_end) of all filler bytes of the
// images, of the first kind elsewhere.
struct FillerRange {
  uint64_t vary_begin = 0;
  uint64_t vary_end = 0;
};

// Bindings of one allocation that lie close together, with a margin on both sides. Offsets are from
// the image's first byte.
class AccessImage final {
 public:
  // Bytes of one class.
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool readable = false;
    bool writable = false;
    uint64_t first_filler = 0;  // Of all filler bytes of the dispatch, when not readable.
  };

  AccessImage() = default;
  AccessImage(const AccessImage&) = delete;
  AccessImage& operator=(const AccessImage&) = delete;

  // In this order. `covered` is the hull of the bindings in it; Finish cuts the image into segments
  // and counts `filler_bytes` on.
  void Start(const BoundBytes& any, ByteRange covered);
  void AddBinding(const BoundBytes& binding) { bounds_.push_back({binding.range, binding.access}); }
  Status Finish(uint64_t* filler_bytes);

  void Fill(int copy, FillerRange filler);
  // The hull of the bytes that either of the first two runs changed, in the first segment where
  // that was not declared; empty where there is none. The second run varied all filler, so a value
  // that happens to equal the filler of one run differs from that of the other.
  ByteRange UndeclaredWrites() const;
  // True when a declared result of `copy`, which had that filler, is not that of the first copy. A
  // byte that holds its filler in both was not written.
  bool ResultsDiffer(int copy, FillerRange filler) const;
  // Takes the results of the first copy into the buffer, but for the bytes that were not written:
  // those on which the first two copies still differ.
  void Adopt() const;

  // The bytes of a copy, which a kernel that runs elsewhere is given and gives back.
  std::span<std::byte> Bytes(int copy) const { return {Copy(copy), size_}; }
  // Where byte `offset` of the allocation lies in a copy.
  uint64_t OffsetOf(uint64_t allocation_offset) const {
    return static_cast<uint64_t>(static_cast<int64_t>(allocation_offset) - origin_);
  }
  // Where the kernel finds byte `offset` of the allocation.
  std::byte* BytesAt(int copy, uint64_t offset) const { return Copy(copy) + OffsetOf(offset); }
  // May lie outside the allocation.
  int64_t AllocationOffset(uint64_t offset) const { return static_cast<int64_t>(offset) + origin_; }
  // The allocation's offset of an address in the copy or its guards.
  std::optional<int64_t> Locate(int copy, const std::byte* address) const;
  void AllowGuardReads(int copy, bool allowed);

  const std::vector<Segment>& segments() const { return segments_; }
  const std::byte* allocation() const { return allocation_; }
  const std::string& label() const { return *label_; }
  uint64_t allocation_bytes() const { return allocation_bytes_; }

 private:
  struct Bound {
    ByteRange range;
    Access access;
  };
  std::byte* Copy(int copy) const { return copies_[static_cast<size_t>(copy)].data(); }
  std::byte* Real(uint64_t offset) const { return allocation_ + AllocationOffset(offset); }

  std::byte* allocation_ = nullptr;
  uint64_t allocation_bytes_ = 0;
  const std::string* label_ = nullptr;
  int64_t origin_ = 0;  // Offset in the allocation of the image's first byte.
  uint64_t size_ = 0;
  std::vector<Bound> bounds_;
  std::vector<Segment> segments_;
  std::array<GuardedMemory, kCopies> copies_;
};

// Bytes that are no buffer's, between margins: a workgroup's shared memory, or the constants.
class SideMemory final {
 public:
  // Error kAllocation.
  Status Resize(uint64_t size_bytes);
  std::byte* bytes() const { return memory_.data() + kMarginBytes; }
  uint64_t size_bytes() const { return size_bytes_; }
  // Fills all of it, margins included.
  void Fill(std::byte filler);
  // The hull of the bytes of the margins that do not hold `filler`, from the first byte on.
  // Nothing where there is none.
  struct Spill {
    int64_t begin = 0;
    int64_t end = 0;
  };
  std::optional<Spill> FindSpill(std::byte filler) const;
  // How far an address in it, its margins or its guards lies from its first byte.
  std::optional<int64_t> Locate(const std::byte* address) const;
  void AllowGuardReads(bool allowed) { memory_.AllowReads(allowed); }

 private:
  GuardedMemory memory_;
  uint64_t size_bytes_ = 0;
  uint64_t whole_bytes_ = 0;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CHECK_ACCESS_IMAGE_H_
