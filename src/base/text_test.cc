#include "base/text.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(TextTest, PrintableSteersNoTerminal) {
  EXPECT_EQ(Printable("blk.0.attn_q \"a\\b\""), "blk.0.attn_q \"a\\b\"");
  EXPECT_EQ(Printable(std::string_view("\x1b[31m\n\0\x7f", 8)), "\\x1b[31m\\x0a\\x00\\x7f");
  // A C1 control (CSI), as UTF-8 and as a bare byte.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m\x9b"),
            "\\xc2\\x9b31m\\x9b");
  // A line separator, a change of direction, a mark that is not seen.
  EXPECT_EQ(Printable("\xe2\x80\xa8\xe2\x80\xae\xef\xbb\xbf"),
            "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xef\\xbb\\xbf");
  EXPECT_EQ(Printable("\xc3\xa9\xe2\x82\xac"), "\xc3\xa9\xe2\x82\xac");
}

TEST(TextTest, PrintableEscapesWhatIsNoUtf8) {
  // A stray continuation, an overlong form, a surrogate, a cut sequence, a value past the last.
  EXPECT_EQ(Printable("\x80"), "\\x80");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(TextTest, QuotedEscapesItsOwnMarks) {
  EXPECT_EQ(Quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\x0a\"");
  EXPECT_EQ(Quoted(""), "\"\"");
}

TEST(TextTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Quoted("abcdef", 6), "\"abcdef\"");
  EXPECT_EQ(Quoted("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(Quoted("ab\xe2\x82\xac", 4), "\"ab...\"");
  EXPECT_EQ(Beginning("\x80\x80", 1), "");
}

}  // namespace
}  // namespace assay
