// Byte pair merges against a plain search for the best pair at every step.
#include "llm/tokenizer/bpe.h"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::llm {
namespace {

using ::testing::ElementsAre;

using PlainTable = std::map<std::pair<TokenId, TokenId>, Merge>;

std::vector<TokenId> PlainMerge(const PlainTable& table, std::vector<TokenId> tokens) {
  while (true) {
    size_t best = tokens.size();
    Merge best_merge;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto found = table.find({tokens[i], tokens[i + 1]});
      if (found == table.end()) continue;
      if (best == tokens.size() || found->second.rank < best_merge.rank) {
        best = i;
        best_merge = found->second;
      }
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = best_merge.token;
    tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

std::vector<TokenId> HeapMerge(const MergeTable& table, const std::vector<TokenId>& tokens) {
  BytePairMerger merger(&table);
  std::vector<TokenId> out;
  merger.Append(tokens, &out);
  return out;
}

TEST(BytePairMerger, AgreesWithThePlainSearchOnRandomMerges) {
  std::mt19937 generator(11);
  for (int round = 0; round < 400; ++round) {
    const TokenId letters = 2 + static_cast<TokenId>(generator() % 4);
    PlainTable plain;
    MergeTable table(60);
    TokenId next = letters;
    for (uint32_t rank = 0; rank < 60; ++rank) {
      const auto left = static_cast<TokenId>(generator() % static_cast<uint32_t>(next));
      const auto right = static_cast<TokenId>(generator() % static_cast<uint32_t>(next));
      const Merge merge{rank, next};
      if (!plain.emplace(std::pair(left, right), merge).second) continue;
      table.Add(left, right, merge);
      ++next;
    }
    for (int text = 0; text < 20; ++text) {
      std::vector<TokenId> tokens(generator() % 40);
      for (TokenId& token : tokens) {
        token = static_cast<TokenId>(generator() % static_cast<uint32_t>(letters));
      }
      ASSERT_EQ(HeapMerge(table, tokens), PlainMerge(plain, tokens));
    }
  }
}

TEST(BytePairMerger, EqualRanksMergeFromTheLeft) {
  MergeTable table(1);
  table.Add(0, 0, {0, 1});
  EXPECT_THAT(HeapMerge(table, {0, 0, 0}), ElementsAre(1, 0));
  EXPECT_THAT(HeapMerge(table, {0, 0, 0, 0, 0}), ElementsAre(1, 1, 0));
}

TEST(BytePairMerger, LowerRankWinsOverFurtherLeft) {
  MergeTable table(2);
  table.Add(0, 1, {5, 3});
  table.Add(1, 2, {4, 4});
  EXPECT_THAT(HeapMerge(table, {0, 1, 2}), ElementsAre(0, 4));
}

TEST(BytePairMerger, OneAndNoTokens) {
  const MergeTable table(0);
  EXPECT_THAT(HeapMerge(table, {}), ElementsAre());
  EXPECT_THAT(HeapMerge(table, {7}), ElementsAre(7));
}

TEST(BytePairMerger, AppendsAfterWhatIsThere) {
  const MergeTable table(0);
  BytePairMerger merger(&table);
  std::vector<TokenId> out = {9};
  merger.Append(std::vector<TokenId>{1, 2}, &out);
  merger.Append(std::vector<TokenId>{3}, &out);
  EXPECT_THAT(out, ElementsAre(9, 1, 2, 3));
}

TEST(MergeTable, TheFirstMergeOfAPairStays) {
  MergeTable table(2);
  table.Add(3, 4, {1, 10});
  table.Add(3, 4, {0, 11});
  ASSERT_NE(table.Find(3, 4), nullptr);
  EXPECT_EQ(table.Find(3, 4)->rank, 1U);
  EXPECT_EQ(table.Find(3, 4)->token, 10);
  EXPECT_EQ(table.Find(4, 3), nullptr);
}

TEST(MergeTable, HoldsAsManyPairsAsItWasMadeFor) {
  constexpr TokenId kSide = 100;
  MergeTable table(kSide * kSide);
  for (TokenId left = 0; left < kSide; ++left) {
    for (TokenId right = 0; right < kSide; ++right) {
      table.Add(left, right, {0, left * kSide + right});
    }
  }
  for (TokenId left = 0; left < kSide; ++left) {
    for (TokenId right = 0; right < kSide; ++right) {
      ASSERT_NE(table.Find(left, right), nullptr);
      ASSERT_EQ(table.Find(left, right)->token, left * kSide + right);
    }
  }
  EXPECT_EQ(table.Find(kSide, 0), nullptr);
}

}  // namespace
}  // namespace assay::llm
