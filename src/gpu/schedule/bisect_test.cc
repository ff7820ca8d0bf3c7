#include "gpu/schedule/bisect.h"

#include <gtest/gtest.h>
// After gtest.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <rapidcheck/gtest.h>

#include "tests/conformance/expect_error.h"

namespace assay::gpu {
namespace {

// A pair of dispatches of a group whose order the results follow.
struct Edge {
  GroupPlace place;
  uint32_t first;
  uint32_t second;
};

bool Inverts(const ArrangedGroup& group, const Edge& edge) {
  if (group.place != edge.place) return false;
  const std::vector<uint32_t>& order = group.arrangement.order;
  return std::ranges::find(order, edge.second) < std::ranges::find(order, edge.first);
}

bool Mixes(const ArrangedGroup& group, const Edge& edge) {
  const Arrangement& arrangement = group.arrangement;
  return group.place == edge.place && arrangement.mixed_begin <= edge.first &&
         edge.second < arrangement.mixed_end;
}

ArrangedGroup Ordered(GroupPlace place, std::vector<uint32_t> order) {
  ArrangedGroup group{.place = place, .arrangement = {}};
  group.arrangement.order = std::move(order);
  return group;
}

ArrangedGroup Mixed(GroupPlace place, uint32_t count) {
  ArrangedGroup group{.place = place, .arrangement = RecordedArrangement(count)};
  group.arrangement.mixed_end = count;
  return group;
}

TEST(Bisect, E8_FindsAPairThatTheResultsFollow) {
  EXPECT_TRUE(rc::check([] {
    std::vector<ArrangedGroup> groups;
    std::vector<Edge> inverted;
    const auto count = *rc::gen::inRange<uint32_t>(1, 20);
    for (uint32_t g = 1; g <= count; ++g) {
      const GroupPlace place{1 + g / 5, 1 + g % 5};
      const auto size = *rc::gen::inRange<uint32_t>(2, 8);
      std::vector<uint32_t> order = RecordedArrangement(size).order;
      for (uint32_t i = size; i > 1; --i) {
        std::swap(order[i - 1], order[*rc::gen::inRange<uint32_t>(0, i)]);
      }
      groups.push_back(Ordered(place, order));
      for (uint32_t second = 1; second < size; ++second) {
        for (uint32_t first = 0; first < second; ++first) {
          const Edge edge{place, first, second};
          if (Inverts(groups.back(), edge)) inverted.push_back(edge);
        }
      }
    }
    RC_PRE(!inverted.empty());
    std::vector<Edge> edges;
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
      edges.push_back(inverted[*rc::gen::inRange<size_t>(0, inverted.size())]);
    }
    const auto differs = [&](const std::vector<ArrangedGroup>& asked) -> Result<bool> {
      return std::ranges::any_of(asked, [&](const ArrangedGroup& group) {
        return std::ranges::any_of(edges, [&](const Edge& edge) { return Inverts(group, edge); });
      });
    };
    const auto found = FindCulprit(groups, differs);
    RC_ASSERT(found.has_value());
    RC_ASSERT(found->has_value());
    const Culprit& culprit = **found;
    RC_ASSERT(std::ranges::any_of(edges, [&](const Edge& edge) {
      return edge.place == culprit.place && edge.first == culprit.first &&
             edge.second == culprit.second;
    }));
    RC_ASSERT(culprit.alone);
    RC_ASSERT(!culprit.mixed);
    RC_ASSERT(culprit.runs <= 15U);
  }));
}

TEST(Bisect, E8_APairThatNeedsAnotherGroupIsNotAlone) {
  const Edge needed{{1, 1}, 0, 1};
  const Edge last{{2, 3}, 1, 2};
  const std::vector<ArrangedGroup> groups = {Ordered({1, 1}, {1, 0}), Ordered({1, 2}, {1, 0}),
                                             Ordered({2, 3}, {2, 1, 0}), Ordered({2, 4}, {1, 0})};
  const auto differs = [&](const std::vector<ArrangedGroup>& asked) -> Result<bool> {
    const auto any = [&](const Edge& edge) {
      return std::ranges::any_of(asked, [&](const auto& group) { return Inverts(group, edge); });
    };
    return any(needed) && any(last);
  };
  const Culprit culprit = FindCulprit(groups, differs).value().value();
  EXPECT_EQ(culprit.place, last.place);
  EXPECT_EQ(culprit.first, 1U);
  EXPECT_EQ(culprit.second, 2U);
  EXPECT_FALSE(culprit.alone);
}

TEST(Bisect, E8_APairThatNeedsAnotherPairIsNotAlone) {
  const auto differs = [](const std::vector<ArrangedGroup>& asked) -> Result<bool> {
    return std::ranges::any_of(asked, [](const ArrangedGroup& group) {
      return Inverts(group, {{1, 1}, 0, 1}) && Inverts(group, {{1, 1}, 2, 3});
    });
  };
  const Culprit culprit = FindCulprit({Ordered({1, 1}, {3, 2, 1, 0})}, differs).value().value();
  EXPECT_FALSE(culprit.alone);
  EXPECT_EQ(culprit.second - culprit.first, 1U);
}

TEST(Bisect, E8_MixedWorkgroupsAreCutToAPair) {
  EXPECT_TRUE(rc::check([] {
    std::vector<ArrangedGroup> groups;
    for (uint32_t g = 1; g <= 5; ++g) groups.push_back(Mixed({1, g}, 6));
    Edge edge{{1, *rc::gen::inRange<uint32_t>(1, 6)}, 0, *rc::gen::inRange<uint32_t>(0, 6)};
    edge.first = *rc::gen::inRange<uint32_t>(0, edge.second + 1);
    const auto differs = [&](const std::vector<ArrangedGroup>& asked) -> Result<bool> {
      return std::ranges::any_of(asked,
                                 [&](const ArrangedGroup& group) { return Mixes(group, edge); });
    };
    const auto found = FindCulprit(groups, differs);
    RC_ASSERT(found.has_value() && found->has_value());
    const Culprit& culprit = **found;
    RC_ASSERT(culprit.place == edge.place);
    RC_ASSERT(culprit.first == edge.first);
    RC_ASSERT(culprit.second == edge.second);
    RC_ASSERT(culprit.mixed);
    RC_ASSERT(culprit.alone == (edge.second - edge.first <= 1));
  }));
}

TEST(Bisect, ARunThatDoesNotDifferHasNoCulprit) {
  const std::vector<ArrangedGroup> groups = {Ordered({1, 1}, {1, 0})};
  const auto never = [](const std::vector<ArrangedGroup>&) -> Result<bool> { return false; };
  const auto always = [](const std::vector<ArrangedGroup>&) -> Result<bool> { return true; };
  EXPECT_FALSE(FindCulprit(groups, never).value().has_value());
  EXPECT_FALSE(FindCulprit(groups, always).value().has_value());
}

TEST(Bisect, AFailedRunEndsTheSearch) {
  const auto fails = [](const std::vector<ArrangedGroup>&) -> Result<bool> {
    return Fail(ErrorCode::kDevice, "", "It is gone.");
  };
  EXPECT_THAT(FindCulprit({Ordered({1, 1}, {1, 0})}, fails),
              assay::testing::FailsWith(ErrorCode::kDevice, "It is gone."));
}

}  // namespace
}  // namespace assay::gpu
