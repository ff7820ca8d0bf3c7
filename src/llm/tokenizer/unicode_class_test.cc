// Character classes and UTF-8, for every code point.
#include "llm/tokenizer/unicode_class.h"

#include <string>

#include <gtest/gtest.h>

#include "support/pattern_oracle.h"

namespace assay::llm {
namespace {

using assay::testing::PatternOracle;

constexpr uint32_t kCodePoints = 0x110000;

bool IsSurrogate(uint32_t code_point) { return code_point >= 0xD800 && code_point < 0xE000; }

std::string Utf8(uint32_t code_point) {
  std::string text;
  AppendUtf8(code_point, &text);
  return text;
}

// What Unicode 15.0 and 15.1 added to the letters and numbers of 14.0, as llama.cpp has it.
struct Addition {
  uint32_t first;
  uint32_t last;
  CharClass char_class;
};
constexpr Addition kAdditions[] = {
    {0x1123F, 0x11240, CharClass::kLetter}, {0x11F02, 0x11F02, CharClass::kLetter},
    {0x11F04, 0x11F10, CharClass::kLetter}, {0x11F12, 0x11F33, CharClass::kLetter},
    {0x11F50, 0x11F59, CharClass::kNumber}, {0x1342F, 0x1342F, CharClass::kLetter},
    {0x13441, 0x13446, CharClass::kLetter}, {0x1B132, 0x1B132, CharClass::kLetter},
    {0x1B155, 0x1B155, CharClass::kLetter}, {0x1D2C0, 0x1D2D3, CharClass::kNumber},
    {0x1DF25, 0x1DF2A, CharClass::kLetter}, {0x1E030, 0x1E06D, CharClass::kLetter},
    {0x1E4D0, 0x1E4EB, CharClass::kLetter}, {0x1E4F0, 0x1E4F9, CharClass::kNumber},
    {0x2B739, 0x2B739, CharClass::kLetter}, {0x2EBF0, 0x2EE5D, CharClass::kLetter},
    {0x31350, 0x323AF, CharClass::kLetter},
};
constexpr uint32_t kMongolianVowelSeparator = 0x180E;

CharClass Expected(uint32_t code_point, CharClass unicode14) {
  for (const Addition& addition : kAdditions) {
    if (code_point >= addition.first && code_point <= addition.last) return addition.char_class;
  }
  // PCRE2's \s keeps a character that lost the property with Unicode 6.3.
  return code_point == kMongolianVowelSeparator ? CharClass::kOther : unicode14;
}

TEST(UnicodeClass, EveryCodePointAgreesWithPcre2ButForTheListedOnes) {
  // A PCRE2 of later Unicode knows letters that this table does not, and no fewer.
  const bool listed = PatternOracle::UnicodeVersion() == "14.0.0";
  const PatternOracle letter("\\p{L}");
  const PatternOracle number("\\p{N}");
  const PatternOracle space("\\s");
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    if (IsSurrogate(c)) continue;
    if (!listed && ClassOf(c) == CharClass::kOther) continue;
    const std::string text = Utf8(c);
    const CharClass unicode14 = letter.MatchAt(text, 0)   ? CharClass::kLetter
                                : number.MatchAt(text, 0) ? CharClass::kNumber
                                : space.MatchAt(text, 0)  ? CharClass::kSpace
                                                          : CharClass::kOther;
    ASSERT_EQ(ClassOf(c), Expected(c, unicode14)) << std::hex << c;
  }
}

TEST(UnicodeClass, NumbersThatAreNoCodePointsAreOther) {
  EXPECT_EQ(ClassOf(0x110000), CharClass::kOther);
  EXPECT_EQ(ClassOf(0xFFFFFFFF), CharClass::kOther);
}

TEST(Utf8, EveryCodePointRoundTripsAndNoShorterPrefixDoes) {
  for (uint32_t c = 0; c < kCodePoints; ++c) {
    const std::string text = Utf8(c);
    const DecodedChar decoded = DecodeAt(text, 0);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const DecodedChar part = DecodeAt(std::string_view(text).substr(0, cut), 0);
      ASSERT_EQ(part.code_point, kReplacementChar);
      ASSERT_EQ(part.length, 1U);
    }
  }
}

TEST(Utf8, BytesOutsideWellFormedSequencesStandAlone) {
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf",
                          "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80",
                          "\xff", "\xfe", "\xc3(", "\xe2\x82(", "\xf0\x9f\x98("}) {
    const DecodedChar decoded = DecodeAt(bad, 0);
    EXPECT_EQ(decoded.code_point, kReplacementChar) << ::testing::PrintToString(bad);
    EXPECT_EQ(decoded.length, 1U);
  }
}

}  // namespace
}  // namespace assay::llm
