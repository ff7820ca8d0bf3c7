// SpecialTokens: which texts become tokens, and in what order they are looked for.
#include "llm/tokenizer/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::llm {
namespace {

using ::testing::ElementsAre;

// "text" for ordinary text, "#7" for token 7.
std::vector<std::string> Split(const SpecialTokens& tokens, std::string_view text, bool control) {
  std::vector<std::string> shown;
  for (const auto& fragment : tokens.Split(text, control)) {
    if (fragment.token) {
      shown.push_back(std::string("#").append(std::to_string(*fragment.token)));
    } else {
      shown.emplace_back(fragment.text);
    }
  }
  return shown;
}

TEST(SpecialTokens, SplitsAtEachOccurrence) {
  const SpecialTokens tokens({{"<x>", 7, true}});
  EXPECT_THAT(Split(tokens, "a<x><x>b", true), ElementsAre("a", "#7", "#7", "b"));
  EXPECT_THAT(Split(tokens, "<x>", true), ElementsAre("#7"));
  EXPECT_THAT(Split(tokens, "<x", true), ElementsAre("<x"));
  EXPECT_THAT(Split(tokens, "", true), ElementsAre());
}

TEST(SpecialTokens, ControlTokensOnRequestOnly) {
  const SpecialTokens tokens({{"<x>", 7, true}, {"<u>", 8, false}});
  EXPECT_THAT(Split(tokens, "<x>a<u>", false), ElementsAre("<x>a", "#8"));
  EXPECT_THAT(Split(tokens, "<x>a<u>", true), ElementsAre("#7", "a", "#8"));
}

TEST(SpecialTokens, LongerTextsAreTakenFirstInTheWholeInput) {
  const SpecialTokens tokens({{"ab", 1, true}, {"bcd", 2, true}});
  EXPECT_THAT(Split(tokens, "abcd", true), ElementsAre("a", "#2"));
  EXPECT_THAT(Split(tokens, "abcdab", true), ElementsAre("a", "#2", "#1"));
}

TEST(SpecialTokens, NothingIsFoundAcrossATokenAlreadyTaken) {
  const SpecialTokens tokens({{"xx<y>", 1, true}, {"ab", 2, true}});
  EXPECT_THAT(Split(tokens, "axx<y>b", true), ElementsAre("a", "#1", "b"));
}

TEST(SpecialTokens, OverlapsOfOneTokenWithItselfGoToTheLeft) {
  const SpecialTokens tokens({{"aa", 1, true}});
  EXPECT_THAT(Split(tokens, "aaa", true), ElementsAre("#1", "a"));
}

}  // namespace
}  // namespace assay::llm
