// Which bytes the dispatches since the last barrier touch: the automatic barrier mode (E5) over the
// one range rule (E4).
#ifndef ASSAY_GPU_ACCESS_TRACKER_H_
#define ASSAY_GPU_ACCESS_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/base.h"

namespace assay::gpu {

// A set of bytes as sorted, disjoint ranges that do not touch. Add and Overlaps are logarithmic in
// the ranges held, but for the move of those behind an insertion.
class IntervalSet final {
 public:
  void Clear() { ranges_.clear(); }
  void Add(ByteRange range);
  bool Overlaps(ByteRange range) const;
  const std::vector<ByteRange>& ranges() const { return ranges_; }

 private:
  std::vector<ByteRange> ranges_;
};

// Accesses since the last barrier. Allocations are known by a small dense index. One thread.
class AccessTracker final {
 public:
  // True when `access` to `range` must be ordered behind something added since Clear().
  bool Conflicts(uint32_t allocation, ByteRange range, Access access) const;
  void Add(uint32_t allocation, ByteRange range, Access access);

  // A dispatch that declares no ranges: it conflicts with anything, and anything with it.
  bool AnythingConflicts() const { return touched_ || everything_; }
  void AddEverything() { everything_ = true; }

  // A barrier: nothing before it matters any more. Constant time.
  void Clear();

 private:
  struct Touched {
    uint64_t epoch = 0;  // The sets count only while it equals the tracker's.
    IntervalSet reads;
    IntervalSet writes;
  };
  std::vector<Touched> allocations_;
  uint64_t epoch_ = 1;
  bool touched_ = false;
  bool everything_ = false;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_ACCESS_TRACKER_H_
