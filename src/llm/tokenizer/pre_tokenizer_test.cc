// The qwen2 split: cases by hand, and random texts against the pattern itself.
#include "llm/tokenizer/pre_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/pattern_oracle.h"

namespace assay::llm {
namespace {

using assay::testing::PatternOracle;

using ::testing::ElementsAre;

constexpr char kPattern[] =
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    "|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t length = NextPieceLength(text);
    pieces.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

TEST(PreTokenizer, WordsTakeOneCharacterBeforeThem) {
  EXPECT_THAT(Split("Hello world"), ElementsAre("Hello", " world"));
  EXPECT_THAT(Split("(word)"), ElementsAre("(word", ")"));
  EXPECT_THAT(Split("\tx ((y"), ElementsAre("\tx", " ((", "y"));
  EXPECT_THAT(Split("a\nb"), ElementsAre("a", "\n", "b"));
}

TEST(PreTokenizer, DigitsStandAlone) {
  EXPECT_THAT(Split("a12 3"), ElementsAre("a", "1", "2", " ", "3"));
}

TEST(PreTokenizer, ContractionsInAllCases) {
  EXPECT_THAT(Split("it's"), ElementsAre("it", "'s"));
  EXPECT_THAT(Split("WE'LL"), ElementsAre("WE", "'LL"));
  EXPECT_THAT(Split("I'vE'd"), ElementsAre("I", "'vE", "'d"));
  EXPECT_THAT(Split("'rest"), ElementsAre("'re", "st"));
  // Without the contraction each would be one word with a mark before it.
  for (const std::string contraction : {"'s", "'S", "'t", "'T", "'m", "'M", "'d", "'D", "'re",
                                        "'RE", "'rE", "'ve", "'Ve", "'ll", "'LL", "'lL"}) {
    EXPECT_THAT(Split(contraction + "x"), ElementsAre(contraction, "x"));
  }
  EXPECT_THAT(Split("o'clock"), ElementsAre("o", "'clock"));
  // The long s folds to s, but the pattern lists letters.
  EXPECT_THAT(Split("a'\u017f"), ElementsAre("a", "'\u017f"));
}

TEST(PreTokenizer, MarksTakeASpaceBeforeAndNewlinesAfter) {
  EXPECT_THAT(Split("a ?!\r\n\nb"), ElementsAre("a", " ?!\r\n\n", "b"));
  EXPECT_THAT(Split("a  ?"), ElementsAre("a", " ", " ?"));
}

TEST(PreTokenizer, SpaceLeavesItsLastCharacterToTheWord) {
  EXPECT_THAT(Split("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(Split("a   1"), ElementsAre("a", "  ", " ", "1"));
  EXPECT_THAT(Split("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(Split("a \n  b"), ElementsAre("a", " \n", " ", " b"));
  EXPECT_THAT(Split("\n \n  "), ElementsAre("\n \n", "  "));
}

TEST(PreTokenizer, BytesThatAreNotUtf8AreMarks) {
  EXPECT_THAT(Split("\xff\xfe!"), ElementsAre("\xff\xfe!"));
  EXPECT_THAT(Split("a\x80z"), ElementsAre("a", "\x80z"));
  EXPECT_THAT(Split(" \xc3\n"), ElementsAre(" \xc3\n"));
}

TEST(PreTokenizer, AgreesWithThePatternOnRandomTexts) {
  const PatternOracle oracle(kPattern);
  const std::vector<std::string> parts = {
      "a",      "Z",      "s",      "S",          "t",
      "re",     "LL",     "'",      "'s",         "'d",
      "ve",     "m",      "1",      "42",         ".",
      "?!",     "-",      " ",      "  ",         "\n",
      "\r",     "\t",     "\v",     "\f",         "(",
      "<|",     "\u00e9", "\u00df", "\u0414",     "\u65e5",
      "\u0b95", "\u0301", "\u093e", "\u0661",     "\u2167",
      "\u00bd", "\u00a0", "\u3000", "\u2028",     "\u0085",
      "\u200b", "\ufeff", "\u20ac", "\U0001F600", "\U0001F1E9",
      "\u200d", "\ufffd", "\u017f", "\u2019",     std::string(1, '\0'),
      "\x7f"};
  std::mt19937 generator(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t n = 1 + generator() % 16; n > 0; --n) text += parts[generator() % parts.size()];
    size_t offset = 0;
    while (offset < text.size()) {
      const auto expected = oracle.MatchAt(text, offset);
      const size_t length = NextPieceLength(std::string_view(text).substr(offset));
      ASSERT_EQ(length, expected) << ::testing::PrintToString(text) << " at byte " << offset;
      offset += length;
    }
  }
}

}  // namespace
}  // namespace assay::llm
