#include "hazard/range_map.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::hazard {
namespace {

constexpr uint64_t kBytes = 600;

// The same map, a value a byte.
class PlainMap {
 public:
  void Assign(ByteRange range, int value) {
    for (uint64_t x = range.begin; x < range.end; ++x) bytes_[x] = value;
  }
  void Add(ByteRange range, int value) {
    for (uint64_t x = range.begin; x < range.end; ++x) bytes_[x] += value;
  }
  const std::vector<int>& bytes() const { return bytes_; }

 private:
  std::vector<int> bytes_ = std::vector<int>(kBytes);
};

std::vector<int> BytesOf(const RangeMap<int>& map) {
  std::vector<int> bytes(kBytes);
  uint64_t last_end = 0;
  size_t count = 0;
  map.ForAll([&](const RangeMap<int>::Entry& entry) {
    RC_ASSERT(entry.begin < entry.end);
    RC_ASSERT(entry.begin >= last_end);
    last_end = entry.end;
    ++count;
    for (uint64_t x = entry.begin; x < entry.end; ++x) bytes[x] = entry.state;
  });
  RC_ASSERT(count == map.size());
  return bytes;
}

struct Step {
  uint8_t what;
  uint16_t begin;
  uint8_t size;
  ByteRange range() const {
    const uint64_t from = begin % kBytes;
    // Mostly short, so that there are many entries; at times long, so that many go at once.
    const uint64_t length = size % 16 == 15 ? 40U * (size / 16U) : size % 7U;
    return {from, std::min(kBytes, from + length)};
  }
};

}  // namespace
}  // namespace assay::hazard

namespace rc {
template <>
struct Arbitrary<assay::hazard::Step> {
  static auto arbitrary() {
    using assay::hazard::Step;
    return gen::build<Step>(gen::set(&Step::what, gen::inRange<uint8_t>(0, 8)),
                            gen::set(&Step::begin, gen::inRange<uint16_t>(0, 600)),
                            gen::set(&Step::size, gen::inRange<uint8_t>(0, 255)));
  }
};
}  // namespace rc

namespace assay::hazard {
namespace {

RC_GTEST_PROP(RangeMap, SaysWhatAValueAByteSays, ()) {
  const auto steps = *rc::gen::container<std::vector<Step>>(*rc::gen::inRange<size_t>(0, 700),
                                                            rc::gen::arbitrary<Step>());
  RangeMap<int> map;
  PlainMap plain;
  int next_value = 1;
  for (const Step& step : steps) {
    const ByteRange range = step.range();
    if (step.what < 4) {
      map.Assign(range, next_value);
      plain.Assign(range, next_value);
      ++next_value;
    } else if (step.what < 7) {
      map.Update(range, [](ByteRange, int& state) { ++state; });
      plain.Add(range, 1);
    } else {
      std::vector<int> seen(kBytes);
      map.ForEach(range, [&](const RangeMap<int>::Entry& entry) {
        RC_ASSERT(entry.range().Overlaps(range));
        const ByteRange shared = entry.range().Intersect(range);
        for (uint64_t x = shared.begin; x < shared.end; ++x) seen[x] = entry.state;
      });
      for (uint64_t x = range.begin; x < range.end; ++x) RC_ASSERT(seen[x] == plain.bytes()[x]);
    }
  }
  RC_CLASSIFY(map.size() > 64);
  RC_ASSERT(BytesOf(map) == plain.bytes());

  map.JoinNeighbours([](RangeMap<int>::Entry& left, const RangeMap<int>::Entry& right) {
    return left.state == right.state;
  });
  RC_ASSERT(BytesOf(map) == plain.bytes());
  map.Assign({0, kBytes}, -1);
  RC_ASSERT(map.size() == 1U);
}

RC_GTEST_PROP(ByteSet, HoldsWhatWasAdded, ()) {
  const auto steps = *rc::gen::container<std::vector<Step>>(*rc::gen::inRange<size_t>(0, 200),
                                                            rc::gen::arbitrary<Step>());
  ByteSet set;
  std::vector<bool> bytes(kBytes);
  for (const Step& step : steps) {
    set.Add(step.range());
    for (uint64_t x = step.range().begin; x < step.range().end; ++x) bytes[x] = true;
  }
  std::vector<bool> present(kBytes, true);
  set.ForEachMissing({0, kBytes}, [&](ByteRange range) {
    for (uint64_t x = range.begin; x < range.end; ++x) present[x] = false;
  });
  RC_ASSERT(present == bytes);
  RC_ASSERT(set.byte_count() ==
            static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), true)));
  size_t runs = 0;
  for (size_t x = 0; x < kBytes; ++x) runs += bytes[x] && (x == 0 || !bytes[x - 1]) ? 1 : 0;
  RC_ASSERT(set.range_count() == runs);
}

TEST(RangeMap, KeepsTenThousandEntriesMadeInAnyOrder) {
  constexpr uint64_t kEntries = 10'000;
  for (const uint64_t stride : {uint64_t{1}, kEntries - 1, uint64_t{3001}}) {
    RangeMap<uint64_t> map;
    for (uint64_t i = 0; i < kEntries; ++i) {
      const uint64_t place = i * stride % kEntries;
      map.Assign({3 * place, 3 * place + 2}, place);
    }
    EXPECT_EQ(map.size(), kEntries);
    uint64_t next = 0;
    map.ForAll([&next](const auto& entry) {
      EXPECT_EQ(entry.begin, 3 * next);
      EXPECT_EQ(entry.state, next);
      ++next;
    });
    EXPECT_EQ(next, kEntries);
    map.Assign({4, 3 * kEntries - 5}, 7);
    EXPECT_EQ(map.size(), 5U);
    map.Clear();
    EXPECT_TRUE(map.empty());
  }
}

TEST(RangeMap, EndsOfTheAddressSpaceAreBytesLikeOthers) {
  RangeMap<int> map;
  map.Assign({UINT64_MAX - 4, UINT64_MAX}, 1);
  map.Assign({0, 4}, 2);
  map.Update({0, UINT64_MAX}, [](ByteRange, int& state) { state += 10; });
  std::vector<int> states;
  map.ForAll([&states](const auto& entry) { states.push_back(entry.state); });
  EXPECT_EQ(states, (std::vector<int>{12, 10, 11}));
  ByteSet set;
  set.Add({UINT64_MAX - 1, UINT64_MAX});
  set.Add({0, UINT64_MAX - 1});
  EXPECT_EQ(set.range_count(), 1U);
}

}  // namespace
}  // namespace assay::hazard
