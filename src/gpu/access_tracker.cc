#include "gpu/access_tracker.h"

#include <algorithm>

namespace assay::gpu {

void IntervalSet::Add(ByteRange range) {
  if (range.empty()) return;
  // Activations grow upwards, so most additions lie behind the last range or extend it.
  if (ranges_.empty() || range.begin > ranges_.back().end) {
    ranges_.push_back(range);
    return;
  }
  // Touching ranges merge: the union has the same bytes, and the list stays short.
  const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &ByteRange::end);
  auto last = first;
  while (last != ranges_.end() && last->begin <= range.end) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
    ++last;
  }
  if (first == last) {
    ranges_.insert(first, range);
  } else {
    *first = range;
    ranges_.erase(first + 1, last);
  }
}

bool IntervalSet::Overlaps(ByteRange range) const {
  if (range.empty()) return false;
  // The first range that ends behind range.begin is the only candidate: those after it begin later.
  const auto candidate = std::ranges::upper_bound(ranges_, range.begin, {}, &ByteRange::end);
  return candidate != ranges_.end() && candidate->Overlaps(range);
}

bool AccessTracker::Conflicts(uint32_t allocation, ByteRange range, Access access) const {
  if (range.empty()) return false;
  if (everything_) return true;
  if (allocation >= allocations_.size()) return false;
  const Touched& touched = allocations_[allocation];
  if (touched.epoch != epoch_) return false;
  if (assay::Conflicts(access, Access::kWrite) && touched.writes.Overlaps(range)) return true;
  return assay::Conflicts(access, Access::kRead) && touched.reads.Overlaps(range);
}

void AccessTracker::Add(uint32_t allocation, ByteRange range, Access access) {
  if (range.empty()) return;
  if (allocation >= allocations_.size()) allocations_.resize(size_t{allocation} + 1);
  Touched& touched = allocations_[allocation];
  if (touched.epoch != epoch_) {
    touched.epoch = epoch_;
    touched.reads.Clear();
    touched.writes.Clear();
  }
  if (Reads(access)) touched.reads.Add(range);
  if (Writes(access)) touched.writes.Add(range);
  touched_ = true;
}

void AccessTracker::Clear() {
  ++epoch_;
  touched_ = false;
  everything_ = false;
}

}  // namespace assay::gpu
