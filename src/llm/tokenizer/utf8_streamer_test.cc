// Utf8Streamer: whole characters, and every byte.
#include "llm/tokenizer/utf8_streamer.h"

#include <random>

#include <gtest/gtest.h>

#include "llm/tokenizer/unicode_class.h"

namespace assay::llm {
namespace {

TEST(Utf8Streamer, HoldsACharacterBackUntilItIsWhole) {
  Utf8Streamer streamer;
  EXPECT_EQ(streamer.Push("a\xf0"), "a");
  EXPECT_EQ(streamer.Push("\x9f\x98"), "");
  EXPECT_EQ(streamer.Push("\x80z"), "\U0001F600z");
  EXPECT_EQ(streamer.Finish(), "");
}

TEST(Utf8Streamer, EveryCodePointCutAnywhereComesOutInOnePiece) {
  for (uint32_t c = 0x80; c < 0x110000; c += c < 0x3000 ? 1 : 257) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(c, &text);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      Utf8Streamer streamer;
      ASSERT_EQ(streamer.Push(std::string_view(text).substr(0, cut)), "") << std::hex << c;
      ASSERT_EQ(streamer.Push(std::string_view(text).substr(cut)), text) << std::hex << c;
    }
  }
}

TEST(Utf8Streamer, BytesThatCanBecomeNoCharacterPassAtOnce) {
  for (const char* bad : {"\xff", "\x80", "\xc0", "\xc1", "\xf5", "\xe0\x80", "\xf0\x80",
                          "\xf4\x90", "\xc3\xc3\xa9", "\xe2\x28"}) {
    Utf8Streamer streamer;
    EXPECT_EQ(streamer.Push(bad), bad) << ::testing::PrintToString(bad);
  }
}

TEST(Utf8Streamer, FinishGivesWhatNeverBecameWhole) {
  Utf8Streamer streamer;
  EXPECT_EQ(streamer.Push("x\xe2\x82"), "x");
  EXPECT_EQ(streamer.Finish(), "\xe2\x82");
  EXPECT_EQ(streamer.Finish(), "");
}

TEST(Utf8Streamer, NoByteIsLostOrHeldForLong) {
  std::mt19937 generator(3);
  for (int round = 0; round < 2000; ++round) {
    Utf8Streamer streamer;
    std::string in;
    std::string out;
    for (int push = 0; push < 10; ++push) {
      std::string bytes(generator() % 4, '\0');
      for (char& byte : bytes) byte = static_cast<char>(generator() % 2 == 0 ? generator() : 0xE2);
      in += bytes;
      out += streamer.Push(bytes);
      ASSERT_LE(in.size() - out.size(), 3U);
    }
    ASSERT_EQ(out + streamer.Finish(), in);
  }
}

}  // namespace
}  // namespace assay::llm
