#include "trace/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace assay::trace {
namespace {

std::string Quoted(std::string_view bytes) {
  std::string out;
  AppendQuoted(&out, bytes);
  return out;
}

TEST(TextTest, T13_WordsStandBareAndAllElseIsQuoted) {
  std::string out;
  AppendText(&out, "a=1,b=2:/x@y_z-0.5+");
  EXPECT_EQ(out, "a=1,b=2:/x@y_z-0.5+");
  for (const std::string_view text : {"", " ", "a b", "#1", "\"", "a;b", "a[0]", "\xC3\xA4"}) {
    EXPECT_FALSE(IsWord(text)) << text;
  }
}

TEST(TextTest, T13_EscapesWhatWouldNotBeOneCleanLine) {
  EXPECT_EQ(Quoted("plain text"), "\"plain text\"");
  EXPECT_EQ(Quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Quoted("a\nb\rc\td"), R"("a\x0ab\x0dc\x09d")");
  EXPECT_EQ(Quoted(std::string_view("\0\x7f", 2)), R"("\x00\x7f")");
  EXPECT_EQ(Quoted("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"");
  // NEL, line separator, right-to-left override, byte order mark.
  EXPECT_EQ(Quoted("\xC2\x85"), R"("\xc2\x85")");
  EXPECT_EQ(Quoted("\xE2\x80\xA8"), R"("\xe2\x80\xa8")");
  EXPECT_EQ(Quoted("\xE2\x80\xAE"), R"("\xe2\x80\xae")");
  EXPECT_EQ(Quoted("\xEF\xBB\xBF"), R"("\xef\xbb\xbf")");
}

TEST(TextTest, T13_EscapesBytesThatAreNotUtf8) {
  // A stray continuation, overlong forms, a surrogate, beyond the last code point, a cut sequence.
  EXPECT_EQ(Quoted("\x80"), R"("\x80")");
  EXPECT_EQ(Quoted("\xC0\xAF"), R"("\xc0\xaf")");
  EXPECT_EQ(Quoted("\xE0\x80\xAF"), R"("\xe0\x80\xaf")");
  EXPECT_EQ(Quoted("\xF0\x80\x80\xAF"), R"("\xf0\x80\x80\xaf")");
  EXPECT_EQ(Quoted("\xED\xA0\x80"), R"("\xed\xa0\x80")");
  EXPECT_EQ(Quoted("\xF4\x90\x80\x80"), R"("\xf4\x90\x80\x80")");
  EXPECT_EQ(Quoted("\xE2\x82"), R"("\xe2\x82")");
  EXPECT_EQ(Quoted("\xFF\xC3\xA4"), "\"\\xff\xC3\xA4\"");
}

struct BadString {
  std::string text;
  size_t next;
  std::string_view wrong;
};

TEST(TextTest, T12_ReadsNoOtherForm) {
  const std::vector<BadString> cases = {
      {"x", 0, "must begin here"},
      {"\"abc", 4, "does not end"},
      {"\"a\\", 2, "backslash must be followed"},
      {"\"a\\n\"", 2, "backslash must be followed"},
      {"\"a\\x0\"", 2, "backslash must be followed"},
      {"\"a\\x0A\"", 2, "backslash must be followed"},
      {"\"\\x61\"", 0, "needs no escape"},
      {"\"\\xc3\\xa4\"", 0, "needs no escape"},
      {"\"\\x22\"", 0, "needs no escape"},
      {std::string("\"\0\"", 3), 1, "control character"},
      {"\"\t\"", 1, "control character"},
      {"\"\xE2\x80\xA8\"", 1, "control character"},
      {"\"a\x80\"", 2, "not UTF-8"},
      {"\"\xC3\"", 1, "not UTF-8"},
      {"\"\xC3", 1, "not UTF-8"},
  };
  for (const BadString& bad : cases) {
    std::string out;
    const QuotedEnd end = ParseQuoted(bad.text, 0, &out);
    ASSERT_NE(end.wrong, nullptr) << bad.text;
    EXPECT_NE(std::string_view(end.wrong).find(bad.wrong), std::string_view::npos)
        << bad.text << ": " << end.wrong;
    EXPECT_EQ(end.next, bad.next) << bad.text;
  }
}

// Bytes that meet many of the rules: plain characters, controls, pieces of UTF-8.
rc::Gen<std::string> AnyBytes() {
  const auto piece = rc::gen::element<std::string>(
      "a", "\"", "\\", "x", "0a", "\n", "\xC3", "\xA4", "\xC2\x85", "\xE2\x80\xA8", "\xE2", "\x80",
      "\xF0", "\x9F\x98\x80", "\xED\xA0\x80", "\xFF", "\\x");
  const auto pieces = rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                                   [](const std::vector<std::string>& parts) {
                                     std::string all;
                                     for (const std::string& part : parts) all += part;
                                     return all;
                                   });
  return rc::gen::oneOf(pieces, rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
}

RC_GTEST_PROP(TextPropertyTest, T13_AnyBytesReadBackAndStayOneLine, ()) {
  const std::string bytes = *AnyBytes();
  const std::string quoted = Quoted(bytes);
  for (const char c : quoted) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
  std::string back;
  const QuotedEnd end = ParseQuoted(quoted, 0, &back);
  const bool readable = end.wrong == nullptr;
  RC_ASSERT(readable);
  RC_ASSERT(end.next == quoted.size());
  RC_ASSERT(back == bytes);
}

RC_GTEST_PROP(TextPropertyTest, T12_WhatIsReadIsWrittenTheSame, ()) {
  std::string text(1, '"');
  text += *AnyBytes();
  text += '"';
  std::string bytes;
  const QuotedEnd end = ParseQuoted(text, 0, &bytes);
  const bool readable = end.wrong == nullptr;
  RC_CLASSIFY(readable);
  if (readable) RC_ASSERT(Quoted(bytes) == text.substr(0, end.next));
}

}  // namespace
}  // namespace assay::trace
