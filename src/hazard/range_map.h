// RangeMap: bytes of one buffer, in disjoint ranges that each carry a state.
//
// A flat sorted vector while it is small, as nearly every buffer's is; past kLeafEntries entries a
// list of such vectors, so that a range in the middle of a million others still costs a bounded
// move.
#ifndef ASSAY_HAZARD_RANGE_MAP_H_
#define ASSAY_HAZARD_RANGE_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "assay/base.h"

namespace assay::hazard {

// `State` is a small value; State{} stands for bytes that were never touched. One thread.
template <typename State>
class RangeMap {
 public:
  struct Entry {
    uint64_t begin;
    uint64_t end;
    State state;
    ByteRange range() const { return {begin, end}; }
  };

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Forgets everything; a small map keeps its memory.
  void Clear() {
    if (leaves_.size() > 1) leaves_.resize(1);
    if (!leaves_.empty()) leaves_[0].clear();
    size_ = 0;
  }

  // Calls visit(const Entry&) for every entry that shares bytes with `range`, in order. It may
  // reach beyond `range` at both ends.
  template <typename Visit>
  void ForEach(ByteRange range, Visit&& visit) const {
    if (range.empty()) return;
    for (Cursor at = Find(range.begin); Valid(at); Advance(at)) {
      const Entry& entry = At(at);
      if (entry.begin >= range.end) return;
      visit(entry);
    }
  }

  // Calls visit(const Entry&) for every entry, in order.
  template <typename Visit>
  void ForAll(Visit&& visit) const {
    for (const Leaf& leaf : leaves_) {
      for (const Entry& entry : leaf) visit(entry);
    }
  }

  // Cuts entries at the ends of `range`, fills its gaps with State{}, and calls
  // change(ByteRange, State&) for every entry in it, in order.
  template <typename Change>
  void Update(ByteRange range, Change&& change) {
    if (range.empty()) return;
    Cursor at = Find(range.begin);
    uint64_t begin = range.begin;
    while (begin < range.end) {
      if (!Valid(at) || At(at).begin >= range.end) {
        at = Insert(at, Entry{begin, range.end, State{}});
      } else if (At(at).begin > begin) {
        at = Insert(at, Entry{begin, At(at).begin, State{}});
      } else {
        if (At(at).begin < begin) {
          at = Insert(at, Entry{At(at).begin, begin, At(at).state});
          Advance(at);
          At(at).begin = begin;
        }
        if (At(at).end > range.end) {
          at = Insert(at, Entry{begin, range.end, At(at).state});
          Cursor rest = at;
          Advance(rest);
          At(rest).begin = range.end;
        }
      }
      Entry& entry = At(at);
      begin = entry.end;
      change(entry.range(), entry.state);
      Advance(at);
    }
  }

  // Makes `range` one entry of `state`, whatever was there.
  void Assign(ByteRange range, const State& state) {
    if (range.empty()) return;
    const Entry made{range.begin, range.end, state};
    Cursor at = Find(range.begin);
    if (Valid(at) && At(at).begin < range.begin) {
      const uint64_t old_end = At(at).end;
      if (old_end > range.end) {
        at = Insert(at, Entry{At(at).begin, range.begin, At(at).state});
        Advance(at);
        At(at).begin = range.end;
        Insert(at, made);
        return;
      }
      At(at).end = range.begin;
      Advance(at);
    }
    if (!Valid(at) || At(at).begin >= range.end) {
      Insert(at, made);
      return;
    }
    if (At(at).end > range.end) {
      At(at).begin = range.end;
      Insert(at, made);
      return;
    }
    At(at) = made;
    Advance(at);
    EraseUntil(at, range.end);
  }

  // Joins entries that touch where join(Entry& left, const Entry& right) says so, having put into
  // `left.state` what stands for both; the end of `left` is set here.
  template <typename Join>
  void JoinNeighbours(Join&& join) {
    std::vector<Leaf> old = std::move(leaves_);
    leaves_.clear();
    size_ = 0;
    for (const Leaf& leaf : old) {
      for (const Entry& entry : leaf) {
        if (size_ > 0) {
          Entry& last = leaves_.back().back();
          if (last.end == entry.begin && join(last, entry)) {
            last.end = entry.end;
            continue;
          }
        }
        if (leaves_.empty() || leaves_.back().size() >= kLeafEntries / 2) leaves_.emplace_back();
        leaves_.back().push_back(entry);
        ++size_;
      }
    }
  }

 private:
  using Leaf = std::vector<Entry>;
  static constexpr size_t kLeafEntries = 64;

  struct Cursor {
    size_t leaf;
    size_t index;
  };

  bool Valid(Cursor at) const {
    return at.leaf < leaves_.size() && at.index < leaves_[at.leaf].size();
  }
  Entry& At(Cursor at) { return leaves_[at.leaf][at.index]; }
  const Entry& At(Cursor at) const { return leaves_[at.leaf][at.index]; }
  void Advance(Cursor& at) const {
    if (++at.index == leaves_[at.leaf].size() && at.leaf + 1 < leaves_.size()) {
      at = {at.leaf + 1, 0};
    }
  }

  // The first entry that ends after `position`; not Valid() when there is none. A leaf is empty
  // only when it is the only one.
  Cursor Find(uint64_t position) const {
    if (leaves_.empty()) return {0, 0};
    size_t leaf_index = 0;
    if (leaves_.size() > 1) {
      const auto leaf = std::partition_point(
          leaves_.begin(), leaves_.end() - 1,
          [position](const Leaf& candidate) { return candidate.back().end <= position; });
      leaf_index = static_cast<size_t>(leaf - leaves_.begin());
    }
    const Leaf& leaf = leaves_[leaf_index];
    const auto entry = std::partition_point(
        leaf.begin(), leaf.end(),
        [position](const Entry& candidate) { return candidate.end <= position; });
    return {leaf_index, static_cast<size_t>(entry - leaf.begin())};
  }

  // Puts `entry` before `at` and returns where it stands.
  Cursor Insert(Cursor at, Entry entry) {
    ++size_;
    if (leaves_.empty()) leaves_.emplace_back();
    if (leaves_[at.leaf].size() == kLeafEntries) {
      // A map that grows at its end fills its leaves; any other keeps them half full.
      const bool at_end = at.leaf + 1 == leaves_.size() && at.index == kLeafEntries;
      const size_t keep = at_end ? kLeafEntries : kLeafEntries / 2;
      const auto inserted = leaves_.emplace(leaves_.begin() + static_cast<ptrdiff_t>(at.leaf) + 1);
      Leaf& full = leaves_[at.leaf];
      inserted->assign(full.begin() + static_cast<ptrdiff_t>(keep), full.end());
      full.resize(keep, entry);
      if (at.index > keep || at_end) at = {at.leaf + 1, at.index - keep};
    }
    Leaf& leaf = leaves_[at.leaf];
    leaf.insert(leaf.begin() + static_cast<ptrdiff_t>(at.index), std::move(entry));
    return at;
  }

  // Erases from `at` on the entries that end at or before `end`, and cuts the next one there.
  void EraseUntil(Cursor at, uint64_t end) {
    if (!Valid(at)) return;
    const auto first_leaf = static_cast<ptrdiff_t>(at.leaf);
    const auto ends_inside = [end](const Entry& entry) { return entry.end <= end; };
    const auto erase_in = [&](Leaf& leaf, size_t from) {
      const auto begin = leaf.begin() + static_cast<ptrdiff_t>(from);
      const auto stop = std::partition_point(begin, leaf.end(), ends_inside);
      size_ -= static_cast<size_t>(stop - begin);
      leaf.erase(begin, stop);
    };
    // Leaves that lie inside go in one piece; those at the two ends lose a part each.
    erase_in(leaves_[at.leaf], at.index);
    if (leaves_[at.leaf].size() == at.index) {
      const auto first_whole = leaves_.begin() + first_leaf + 1;
      auto whole_end = first_whole;
      while (whole_end != leaves_.end() && ends_inside(whole_end->back())) {
        size_ -= whole_end->size();
        ++whole_end;
      }
      leaves_.erase(first_whole, whole_end);
      if (at.leaf + 1 < leaves_.size()) erase_in(leaves_[at.leaf + 1], 0);
    }
    if (leaves_[at.leaf].empty() && leaves_.size() > 1) {
      leaves_.erase(leaves_.begin() + first_leaf);
    }
    const Cursor next = Find(end);
    if (Valid(next) && At(next).begin < end) At(next).begin = end;
  }

  std::vector<Leaf> leaves_;
  size_t size_ = 0;
};

// A set of bytes.
class ByteSet {
 public:
  bool empty() const { return map_.empty(); }
  size_t range_count() const { return map_.size(); }
  uint64_t byte_count() const { return byte_count_; }
  void Clear() {
    map_.Clear();
    byte_count_ = 0;
  }

  void Add(ByteRange range) {
    if (range.empty()) return;
    // Ranges that overlap or touch become one, so that the set is as small as it can be.
    const ByteRange wider{range.begin == 0 ? 0 : range.begin - 1,
                          range.end == UINT64_MAX ? range.end : range.end + 1};
    map_.ForEach(wider, [this, &range](const Entry& entry) {
      range.begin = std::min(range.begin, entry.begin);
      range.end = std::max(range.end, entry.end);
      byte_count_ -= entry.range().size();
    });
    byte_count_ += range.size();
    map_.Assign(range, {});
  }

  // Calls visit(ByteRange) for the parts of `range` that are not in the set, in order.
  template <typename Visit>
  void ForEachMissing(ByteRange range, Visit&& visit) const {
    uint64_t begin = range.begin;
    map_.ForEach(range, [&](const Entry& entry) {
      if (entry.begin > begin) visit(ByteRange{begin, entry.begin});
      begin = entry.end;
    });
    if (begin < range.end) visit(ByteRange{begin, range.end});
  }

 private:
  struct Member {};
  using Entry = RangeMap<Member>::Entry;
  RangeMap<Member> map_;
  uint64_t byte_count_ = 0;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_RANGE_MAP_H_
