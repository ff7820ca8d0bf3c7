#include "gpu/access_tracker.h"

#include <gtest/gtest.h>
// After gtest.
#include <algorithm>
#include <bitset>
#include <vector>

#include <rapidcheck/gtest.h>

namespace assay::gpu {
namespace {

constexpr uint64_t kBytes = 64;
using ByteSet = std::bitset<kBytes>;

ByteSet SetOf(ByteRange range) {
  ByteSet set;
  for (uint64_t i = range.begin; i < range.end; ++i) set.set(i);
  return set;
}

ByteRange AnyRange() {
  const auto begin = *rc::gen::inRange<uint64_t>(0, kBytes);
  return {begin, *rc::gen::inRange<uint64_t>(begin, kBytes + 1)};
}

TEST(IntervalSet, E4_TouchingRangesDoNotOverlap) {
  IntervalSet set;
  set.Add({8, 16});
  EXPECT_FALSE(set.Overlaps({0, 8}));
  EXPECT_FALSE(set.Overlaps({16, 24}));
  EXPECT_TRUE(set.Overlaps({15, 16}));
  EXPECT_TRUE(set.Overlaps({0, 9}));
}

TEST(IntervalSet, E4_EmptyRangeOverlapsNothing) {
  IntervalSet set;
  set.Add({8, 16});
  set.Add({12, 12});
  EXPECT_FALSE(set.Overlaps({12, 12}));
  EXPECT_EQ(set.ranges().size(), 1u);
}

RC_GTEST_PROP(IntervalSet, AgreesWithAMapOfBytes, ()) {
  IntervalSet set;
  ByteSet bytes;
  for (int i = 0; i < 12; ++i) {
    const ByteRange range = AnyRange();
    set.Add(range);
    bytes |= SetOf(range);
    const ByteRange asked = AnyRange();
    RC_ASSERT(set.Overlaps(asked) == (bytes & SetOf(asked)).any());
    for (size_t k = 0; k + 1 < set.ranges().size(); ++k) {
      RC_ASSERT(set.ranges()[k].end < set.ranges()[k + 1].begin);
    }
  }
}

TEST(AccessTracker, E4_ReadsNeverConflictWithReads) {
  AccessTracker tracker;
  tracker.Add(0, {0, 8}, Access::kRead);
  EXPECT_FALSE(tracker.Conflicts(0, {0, 8}, Access::kRead));
  EXPECT_TRUE(tracker.Conflicts(0, {0, 8}, Access::kWrite));
  EXPECT_TRUE(tracker.Conflicts(0, {0, 8}, Access::kReadWrite));
}

TEST(AccessTracker, WritesConflictWithEveryAccess) {
  AccessTracker tracker;
  tracker.Add(0, {0, 8}, Access::kWrite);
  EXPECT_TRUE(tracker.Conflicts(0, {7, 9}, Access::kRead));
  EXPECT_TRUE(tracker.Conflicts(0, {7, 9}, Access::kWrite));
}

TEST(AccessTracker, AllocationsAreApart) {
  AccessTracker tracker;
  tracker.Add(3, {0, 8}, Access::kWrite);
  EXPECT_FALSE(tracker.Conflicts(2, {0, 8}, Access::kWrite));
  EXPECT_FALSE(tracker.Conflicts(1000, {0, 8}, Access::kWrite));
}

TEST(AccessTracker, E5_ADispatchWithoutRangesTouchesEverything) {
  AccessTracker tracker;
  EXPECT_FALSE(tracker.AnythingConflicts());
  tracker.Add(0, {0, 8}, Access::kRead);
  EXPECT_TRUE(tracker.AnythingConflicts());
  tracker.Clear();
  tracker.AddEverything();
  EXPECT_TRUE(tracker.AnythingConflicts());
  EXPECT_TRUE(tracker.Conflicts(7, {0, 1}, Access::kRead));
  EXPECT_FALSE(tracker.Conflicts(7, {4, 4}, Access::kReadWrite));
}

RC_GTEST_PROP(AccessTracker, AgreesWithMapsOfBytes, ()) {
  constexpr uint32_t kAllocations = 3;
  AccessTracker tracker;
  std::vector<ByteSet> reads(kAllocations), writes(kAllocations);
  for (int i = 0; i < 20; ++i) {
    if (*rc::gen::inRange(0, 8) == 0) {
      tracker.Clear();
      std::ranges::fill(reads, ByteSet());
      std::ranges::fill(writes, ByteSet());
    }
    const auto allocation = *rc::gen::inRange<uint32_t>(0, kAllocations);
    const ByteRange range = AnyRange();
    const auto access = *rc::gen::element(Access::kRead, Access::kWrite, Access::kReadWrite);
    ByteSet against = writes[allocation];
    if (Writes(access)) against |= reads[allocation];
    RC_ASSERT(tracker.Conflicts(allocation, range, access) == (against & SetOf(range)).any());
    tracker.Add(allocation, range, access);
    if (Reads(access)) reads[allocation] |= SetOf(range);
    if (Writes(access)) writes[allocation] |= SetOf(range);
  }
}

}  // namespace
}  // namespace assay::gpu
