#include "compare/align.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::compare {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Tokens = std::vector<Token>;

// The length of the longest common subsequence, by the textbook table.
size_t LongestCommon(const Tokens& a, const Tokens& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      best[i][j] =
          a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    }
  }
  return best[a.size()][b.size()];
}

// Checks that the matches are equal stretches in order, and returns how much they match.
size_t CheckMatches(const Tokens& a, const Tokens& b, const std::vector<Match>& matches) {
  size_t a_done = 0, b_done = 0, matched = 0;
  for (const Match& match : matches) {
    EXPECT_GT(match.size, 0U);
    EXPECT_GE(match.a, a_done);
    EXPECT_GE(match.b, b_done);
    for (size_t i = 0; i < match.size; ++i) EXPECT_EQ(a.at(match.a + i), b.at(match.b + i));
    a_done = match.a + match.size;
    b_done = match.b + match.size;
    matched += match.size;
  }
  EXPECT_LE(a_done, a.size());
  EXPECT_LE(b_done, b.size());
  return matched;
}

Tokens Random(std::mt19937* rng, size_t size, uint32_t letters) {
  Tokens tokens(size);
  for (Token& token : tokens) token = (*rng)() % letters;
  return tokens;
}

TEST(MyersTest, FindsTheShortestScript) {
  std::mt19937 rng(1);
  for (int round = 0; round < 500; ++round) {
    const Tokens a = Random(&rng, rng() % 30, 4), b = Random(&rng, rng() % 30, 4);
    const EditPath path = FindEditPath(a, b, 60, Goal::kBothEnds);
    EXPECT_TRUE(path.reached);
    EXPECT_EQ(path.a_end, a.size());
    EXPECT_EQ(path.b_end, b.size());
    EXPECT_EQ(CheckMatches(a, b, path.matches), LongestCommon(a, b));
  }
}

TEST(MyersTest, StopsAtItsLimitWithTheFurthestPath) {
  const Tokens a = {1, 2, 3, 4, 5, 6}, b = {1, 2, 9, 8, 7, 6};
  EXPECT_FALSE(FindEditPath(a, b, 5, Goal::kBothEnds).reached);
  EXPECT_TRUE(FindEditPath(a, b, 6, Goal::kBothEnds).reached);
  const EditPath path = FindEditPath(a, b, 2, Goal::kBothEnds);
  EXPECT_THAT(path.matches, ElementsAre(Match{0, 0, 2}));
  EXPECT_EQ(path.a_end + path.b_end, 6U);
}

TEST(MyersTest, EitherEndStopsWhereOneSideIsUsedUp) {
  const Tokens a = {1, 2, 3, 4, 5}, b = {1, 9, 2, 3, 4};
  const EditPath path = FindEditPath(a, b, 3, Goal::kEitherEnd);
  EXPECT_TRUE(path.reached);
  EXPECT_THAT(path.matches, ElementsAre(Match{0, 0, 1}, Match{1, 2, 3}));
}

TEST(AlignTest, MatchesAreEqualStretchesAndNearlyLongest) {
  std::mt19937 rng(2);
  for (int round = 0; round < 60; ++round) {
    Tokens a(400);
    for (size_t i = 0; i < a.size(); ++i) a[i] = rng() % 3 == 0 ? rng() % 5 : 100 + i;
    Tokens b = a;
    for (int edit = 0; edit < 200; ++edit) {
      const auto at = b.begin() + static_cast<ptrdiff_t>(rng() % b.size());
      if (rng() % 2 == 0) {
        b.insert(at, rng() % 5);
      } else {
        b.erase(at);
      }
    }
    const size_t matched = CheckMatches(a, b, AlignTokens(a, b));
    EXPECT_GE(matched * 100, LongestCommon(a, b) * 95);
  }
}

TEST(AlignTest, LongInsertionIsOneGap) {
  Tokens a(3000), inserted(2000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = i % 7 == 0 ? 1000 + i : i % 5;
  for (size_t i = 0; i < inserted.size(); ++i) inserted[i] = i % 7 == 0 ? 100000 + i : i % 5;
  Tokens b = a;
  b.insert(b.begin() + 1400, inserted.begin(), inserted.end());
  const std::vector<Match> matches = AlignTokens(a, b);
  EXPECT_EQ(CheckMatches(a, b, matches), a.size());
  EXPECT_EQ(matches.size(), 2U);
  // Two insertions, so that neither end of the rest is alike.
  for (Token& token : inserted) token += token >= 100000 ? 100000 : 0;
  b.insert(b.begin() + 300, inserted.begin(), inserted.end());
  EXPECT_EQ(CheckMatches(a, b, AlignTokens(a, b)), a.size());
}

TEST(AlignTest, RepetitiveAndUnlikeInputsEnd) {
  const Tokens a(20000, 1), b(30000, 2);
  EXPECT_THAT(AlignTokens(a, b), IsEmpty());
  EXPECT_THAT(AlignTokens(a, {}), IsEmpty());
  Tokens c(20000);
  for (size_t i = 0; i < c.size(); ++i) c[i] = i % 4;
  Tokens d = c;
  for (size_t i = 0; i < d.size(); i += 50) d[i] = 9;
  EXPECT_GE(CheckMatches(c, d, AlignTokens(c, d)), c.size() * 9 / 10);
}

}  // namespace
}  // namespace assay::compare
