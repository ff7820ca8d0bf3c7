// Orders as such: what a schedule makes of a group, and which dispatches of a group conflict.
#include <gtest/gtest.h>
// After gtest.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include <rapidcheck/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_schedule.h"

#include "gpu/schedule/arranger.h"
#include "gpu/schedule/group_conflicts.h"
#include "tests/conformance/expect_error.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;

DeviceInfo Interleaving() {
  DeviceInfo info;
  info.interleaves = true;
  return info;
}

// --- The words

TEST(Schedule, E8_EveryScheduleHasAWordThatMeansIt) {
  const std::vector<std::pair<std::string, Schedule>> words = {
      {"recorded", {ScheduleKind::kRecorded, 0}},
      {"reversed", {ScheduleKind::kReversed, 0}},
      {"late-writes", {ScheduleKind::kLateWrites, 0}},
      {"random:7", {ScheduleKind::kRandom, 7}},
      {"random:18446744073709551615", {ScheduleKind::kRandom, UINT64_MAX}},
      {"interleaved:3", {ScheduleKind::kInterleaved, 3}},
  };
  for (const auto& [word, schedule] : words) {
    const auto parsed = ParseSchedule(word);
    ASSERT_TRUE(parsed) << word;
    EXPECT_EQ(*parsed, schedule) << word;
    EXPECT_EQ(FormatSchedule(schedule), word);
  }
  EXPECT_EQ(ParseSchedule("interleaved").value(), (Schedule{ScheduleKind::kInterleaved, 0}));
}

TEST(Schedule, E8_WhatIsNoScheduleIsRefusedWithThoseThereAre) {
  for (const char* word : {"", "random", "random:", "random:x", "random:-1", "random:1 ",
                           "reversed:1", "reverse", "recorded:", "random:18446744073709551616"}) {
    EXPECT_THAT(ParseSchedule(word), FailsWith(ErrorCode::kInvalidArgument, "random:SEED")) << word;
  }
}

// --- Random groups

// Memory for a group whose dispatches bind pieces of three buffers of 12 bytes.
class RandomGroup {
 public:
  RandomGroup() {
    const size_t count = *rc::gen::inRange<size_t>(1, 12);
    bindings_.resize(count);
    for (std::vector<BackendBinding>& bindings : bindings_) {
      bindings.resize(*rc::gen::inRange<size_t>(0, 5));
      for (BackendBinding& binding : bindings) {
        binding.buffer = &buffers_[*rc::gen::inRange<size_t>(0, buffers_.size())];
        binding.range.begin = *rc::gen::inRange<uint64_t>(0, 12);
        binding.range.end = binding.range.begin + *rc::gen::inRange<uint64_t>(0, 8);
        binding.access = *rc::gen::element(Access::kRead, Access::kWrite, Access::kReadWrite);
        binding.exact = *rc::gen::inRange(0, 4) != 0;
      }
    }
    for (const std::vector<BackendBinding>& bindings : bindings_) {
      dispatches_.push_back({.kernel = nullptr, .bindings = bindings, .constants = {}, .grid = {}});
    }
  }
  Group group(uint64_t command_buffer = 1, uint32_t number = 1) const {
    return {.command_buffer = command_buffer,
            .number = number,
            .first_dispatch = 1,
            .dispatches = dispatches_};
  }
  const std::vector<BackendDispatch>& dispatches() const { return dispatches_; }

 private:
  class Buffer final : public BackendBuffer {};
  std::array<Buffer, 3> buffers_;
  std::vector<std::vector<BackendBinding>> bindings_;
  std::vector<BackendDispatch> dispatches_;
};

std::vector<size_t> PlacesOf(const Arrangement& arrangement) {
  std::vector<size_t> places(arrangement.order.size());
  for (size_t at = 0; at < places.size(); ++at) places[arrangement.order[at]] = at;
  return places;
}

TEST(Schedule, E8_EveryOrderIsAPermutationThatTheSeedFixes) {
  EXPECT_TRUE(rc::check([] {
    const RandomGroup random;
    const Group group = random.group(*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9));
    for (const Schedule& schedule : FixedSchedules(Interleaving())) {
      const Arrangement arrangement = Arrange(schedule, group);
      std::vector<uint32_t> sorted = arrangement.order;
      std::ranges::sort(sorted);
      RC_ASSERT(sorted == RecordedArrangement(group.dispatches.size()).order);
      RC_ASSERT(Arrange(schedule, group) == arrangement);
    }
  }));
}

TEST(Schedule, E8_TogetherTheFixedSchedulesInvertEveryPair) {
  EXPECT_TRUE(rc::check([] {
    const RandomGroup random;
    for (const bool interleaves : {false, true}) {
      DeviceInfo info;
      info.interleaves = interleaves;
      std::set<std::pair<size_t, size_t>> inverted;
      for (const Schedule& schedule : FixedSchedules(info)) {
        const std::vector<size_t> places = PlacesOf(Arrange(schedule, random.group()));
        for (size_t j = 0; j < places.size(); ++j) {
          for (size_t i = 0; i < j; ++i) {
            if (places[j] < places[i]) inverted.emplace(i, j);
          }
        }
      }
      const size_t count = random.dispatches().size();
      RC_ASSERT(inverted.size() == count * (count - 1) / 2);
    }
  }));
}

TEST(Schedule, E8_LateWritesHoldsEachProducerBehindItsReaders) {
  EXPECT_TRUE(rc::check([] {
    const RandomGroup random;
    const std::vector<BackendDispatch>& dispatches = random.dispatches();
    const std::vector<size_t> places =
        PlacesOf(Arrange({ScheduleKind::kLateWrites, 0}, random.group()));
    bool holds_any_back = false;
    for (size_t j = 0; j < dispatches.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        bool produces = dispatches[i].bindings.empty() || dispatches[j].bindings.empty();
        for (const BackendBinding& write : dispatches[i].bindings) {
          for (const BackendBinding& read : dispatches[j].bindings) {
            produces = produces || (write.buffer == read.buffer && Writes(write.access) &&
                                    Reads(read.access) && write.range.Overlaps(read.range));
          }
        }
        RC_ASSERT(!produces || places[j] < places[i]);
        holds_any_back = holds_any_back || produces;
      }
    }
    // Nobody moves for nothing.
    if (!holds_any_back) RC_ASSERT(std::ranges::is_sorted(places));
  }));
}

TEST(Schedule, E8_RandomDependsOnTheSeedAndThePlace) {
  const std::vector<BackendDispatch> dispatches(12);
  const auto order = [&](uint64_t seed, uint64_t command_buffer, uint32_t number) {
    return Arrange({ScheduleKind::kRandom, seed}, {.command_buffer = command_buffer,
                                                   .number = number,
                                                   .first_dispatch = 1,
                                                   .dispatches = dispatches})
        .order;
  };
  const std::set<std::vector<uint32_t>> orders = {order(1, 1, 1), order(2, 1, 1), order(1, 2, 1),
                                                  order(1, 1, 2)};
  EXPECT_EQ(orders.size(), 4U);
  // Of another machine, or another build of this one.
  EXPECT_EQ(order(1, 1, 1), (std::vector<uint32_t>{4, 3, 9, 2, 8, 1, 11, 7, 10, 6, 5, 0}));
}

TEST(Schedule, E8_InterleavedMixesTheWholeGroup) {
  const std::vector<BackendDispatch> dispatches(5);
  const Group group{
      .command_buffer = 1, .number = 1, .first_dispatch = 1, .dispatches = dispatches};
  const Arrangement one = Arrange({ScheduleKind::kInterleaved, 1}, group);
  EXPECT_EQ(one.mixed_begin, 0U);
  EXPECT_EQ(one.mixed_end, 5U);
  EXPECT_NE(one.mixed_seed, Arrange({ScheduleKind::kInterleaved, 2}, group).mixed_seed);
}

// --- Conflicts

using Row = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t, bool>;

Row RowOf(const GroupConflict& conflict) {
  return {conflict.second,         UINT32_MAX - conflict.first, conflict.first_binding,
          conflict.second_binding, conflict.range.begin,        conflict.range.end,
          conflict.certain};
}

std::multiset<Row> ByBruteForce(const std::vector<BackendDispatch>& dispatches) {
  std::multiset<Row> rows;
  for (uint32_t j = 0; j < dispatches.size(); ++j) {
    for (uint32_t i = 0; i < j; ++i) {
      for (uint32_t a = 0; a < dispatches[i].bindings.size(); ++a) {
        for (uint32_t b = 0; b < dispatches[j].bindings.size(); ++b) {
          const BackendBinding& first = dispatches[i].bindings[a];
          const BackendBinding& second = dispatches[j].bindings[b];
          if (first.buffer != second.buffer || !first.range.Overlaps(second.range) ||
              !Conflicts(first.access, second.access)) {
            continue;
          }
          rows.insert(RowOf({.first = i,
                             .second = j,
                             .first_binding = a,
                             .second_binding = b,
                             .range = first.range.Intersect(second.range),
                             .certain = first.exact && second.exact}));
        }
      }
    }
  }
  return rows;
}

TEST(GroupConflicts, E8_AgreeWithBruteForce) {
  EXPECT_TRUE(rc::check([] {
    const RandomGroup random;
    std::multiset<Row> rows;
    ForEachConflict(random.dispatches(), [&](const GroupConflict& conflict) {
      rows.insert(RowOf(conflict));
      return true;
    });
    const std::multiset<Row> expected = ByBruteForce(random.dispatches());
    RC_CLASSIFY(!expected.empty());
    RC_ASSERT(rows == expected);
  }));
}

TEST(GroupConflicts, E8_TheFirstCertainOneIsNamed) {
  EXPECT_TRUE(rc::check([] {
    const RandomGroup random;
    const std::multiset<Row> rows = ByBruteForce(random.dispatches());
    const auto first = std::ranges::find_if(rows, [](const Row& row) { return std::get<6>(row); });
    const std::optional<GroupConflict> found = FirstCertainConflict(random.dispatches());
    RC_ASSERT(found.has_value() == (first != rows.end()));
    if (found) RC_ASSERT(RowOf(*found) == *first);
  }));
}

}  // namespace
}  // namespace assay::gpu
