// The checker's small parts: pieces, plans, the log of dispatches, fingerprints, sentences.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "hazard/describe.h"
#include "hazard/dispatch_log.h"
#include "hazard/group_planner.h"
#include "hazard/piece.h"
#include "hazard/rules.h"

namespace assay::hazard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Piece MakePiece(bool certain, ByteRange range, uint32_t first = 1, BufferIndex buffer = 0) {
  return {Rule::kReadAfterWrite, certain, first, buffer, range};
}

TEST(MergePieces, H1_JoinsRangesThatTouchOfOnePair) {
  std::vector<Piece> pieces = {MakePiece(true, {8, 16}), MakePiece(true, {0, 8}),
                               MakePiece(true, {20, 24}), MakePiece(true, {16, 18}, 2),
                               MakePiece(true, {16, 18}, 1, 1)};
  MergePieces(&pieces);
  EXPECT_THAT(pieces, ElementsAre(MakePiece(true, {0, 16}), MakePiece(true, {20, 24}),
                                  MakePiece(true, {16, 18}, 1, 1), MakePiece(true, {16, 18}, 2)));
}

TEST(MergePieces, BytesThatAreCertainAreNotPossibleAsWell) {
  std::vector<Piece> pieces = {MakePiece(false, {0, 32}), MakePiece(true, {8, 12}),
                               MakePiece(true, {30, 40}), MakePiece(false, {36, 38})};
  MergePieces(&pieces);
  EXPECT_THAT(pieces, ElementsAre(MakePiece(true, {8, 12}), MakePiece(true, {30, 40}),
                                  MakePiece(false, {0, 8}), MakePiece(false, {12, 30})));
}

TEST(MergePieces, AllMemoryIsOneFindingAPair) {
  std::vector<Piece> pieces = {MakePiece(false, {}, 1, kAllMemory),
                               MakePiece(false, {}, 1, kAllMemory),
                               MakePiece(false, {}, 2, kAllMemory)};
  MergePieces(&pieces);
  EXPECT_THAT(pieces, ElementsAre(MakePiece(false, {}, 1, kAllMemory),
                                  MakePiece(false, {}, 2, kAllMemory)));
}

// H5 by brute force: the place that most pairs span, and the fewest places that meet all of them.
RC_GTEST_PROP(GroupPlanner, H5_BestPlaceAndFewestPlaces,
              (const std::vector<std::pair<uint8_t, uint8_t>>& numbers)) {
  constexpr uint32_t kDispatches = 9;
  struct Pair {
    uint32_t first;
    uint32_t second;
    bool certain;
  };
  std::vector<Pair> pairs;
  for (const auto& [a, b] : numbers) {
    const uint32_t second = 1 + b % (kDispatches - 1U);
    pairs.push_back({a % second, second, (a ^ b) % 3 != 0});
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.second < b.second; });
  GroupPlanner planner;
  for (const Pair& pair : pairs) planner.AddPair(pair.first, pair.second, pair.certain);
  const GroupPlanner::Plan plan = planner.Finish();
  RC_ASSERT(!planner.Finish().best.has_value());

  const auto closes = [&](uint32_t before) {
    GroupPlanner::Place place{.before = before};
    for (const Pair& pair : pairs) {
      if (pair.first >= before || before > pair.second) continue;
      (pair.certain ? place.closes_certain : place.closes_possible) += 1;
    }
    return place;
  };
  const auto same = [](const GroupPlanner::Place& a, const GroupPlanner::Place& b) {
    return a.closes_certain == b.closes_certain && a.closes_possible == b.closes_possible;
  };
  RC_ASSERT(plan.best.has_value() == !pairs.empty());
  if (!plan.best) return;
  RC_ASSERT(same(*plan.best, closes(plan.best->before)));
  for (uint32_t before = 0; before < kDispatches; ++before) {
    RC_ASSERT(!closes(before).ClosesMoreThan(*plan.best));
  }

  uint32_t chosen_by_plan = 0;
  for (const GroupPlanner::Place& place : plan.least) {
    RC_ASSERT(same(place, closes(place.before)));
    chosen_by_plan |= 1U << place.before;
  }
  const auto closes_all = [&](uint32_t chosen) {
    return std::all_of(pairs.begin(), pairs.end(), [chosen](const Pair& pair) {
      for (uint32_t before = pair.first + 1; before <= pair.second; ++before) {
        if ((chosen >> before & 1) != 0) return true;
      }
      return false;
    });
  };
  RC_ASSERT(closes_all(chosen_by_plan));
  for (uint32_t chosen = 0; chosen < 1U << kDispatches; ++chosen) {
    if (static_cast<size_t>(std::popcount(chosen)) >= plan.least.size()) continue;
    RC_ASSERT(!closes_all(chosen));
  }
}

TEST(DispatchLog, H4_PruningKeepsWhatAFindingMayName) {
  DispatchLog log(10);
  for (uint32_t ordinal = 1; ordinal <= 20; ++ordinal) {
    log.Append({.line = 100 + ordinal,
                .command_buffer = 1,
                .ordinal = ordinal,
                .dispatch = ordinal,
                .kernel = trace::KernelId(0)});
  }
  EXPECT_TRUE(log.WantsPrune());
  log.Prune(18, {7, 0, 3, 7, 19});
  EXPECT_FALSE(log.WantsPrune());
  EXPECT_EQ(log.size(), 5U);
  for (const uint32_t kept : {3U, 7U, 18U, 19U, 20U}) {
    ASSERT_NE(log.Find(kept), nullptr);
    EXPECT_EQ(log.Find(kept)->line, 100 + kept);
  }
  for (const uint32_t dropped : {0U, 1U, 8U, 17U, 21U}) EXPECT_EQ(log.Find(dropped), nullptr);
}

TEST(Suppressions, CommentsAndWildcards) {
  const auto parsed = ParseSuppressions(
      "# head\n\n0123456789abcdef:1  # known\r\n\tffffffffffffffff:*\n00000000000000ff:12",
      "s.txt");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_THAT(*parsed, ElementsAre(Fingerprint{0x0123456789abcdef, 1}, Fingerprint{UINT64_MAX, 0},
                                   Fingerprint{0xff, 12}));
  EXPECT_EQ(FormatFingerprint((*parsed)[0]), "0123456789abcdef:1");
  EXPECT_EQ(FormatFingerprint((*parsed)[1]), "ffffffffffffffff:*");
  EXPECT_EQ(FormatFingerprint((*parsed)[2]), "00000000000000ff:12");
}

TEST(Suppressions, RefusesWhatIsNoFingerprint) {
  for (const std::string wrong :
       {"raw", "0123456789abcdef", "0123456789abcdef:", "0123456789abcdef:0", "0123456789abcdeg:1",
        "0123456789abcdef:-1", "0123456789abcdef:1 2", "0123456789abcde:1", "0123456789abcdef1:1",
        "0123456789abcdef:99999999999999999999"}) {
    const auto parsed = ParseSuppressions("\n" + wrong + "\n", "s.txt");
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kFormat);
    EXPECT_THAT(parsed.error().message(), HasSubstr("\"s.txt\", line 2: "));
  }
}

TEST(Rules, TableIsInTheOrderOfTheEnum) {
  for (size_t i = 0; i < kRuleCount; ++i) {
    EXPECT_EQ(Rules()[i].rule, static_cast<Rule>(i));
    for (size_t j = 0; j < i; ++j) EXPECT_NE(Rules()[i].name, Rules()[j].name);
  }
}

}  // namespace
}  // namespace assay::hazard
