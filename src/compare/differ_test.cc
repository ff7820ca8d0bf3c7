#include "compare/differ.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compare/pairing.h"
#include "compare/renumber.h"
#include "compare/trace_text_for_test.h"

namespace assay::compare {
namespace {

// Puts both sides together again and counts what was how.
class CountingSink final : public DiffSink {
 public:
  void Equal(Lines a, Lines b) override {
    EXPECT_EQ(a.size(), b.size());
    Append(a, b);
    equal += a.size();
  }
  void EqualBytes(std::string_view lines) override {
    text_a += lines;
    text_b += lines;
    equal_bytes += lines.size();
  }
  void Unlike(Lines a, Lines b) override {
    Append(a, b);
    only_a += a.size();
    only_b += b.size();
  }

  std::string text_a, text_b;
  size_t equal = 0, equal_bytes = 0, only_a = 0, only_b = 0;

 private:
  void Append(Lines a, Lines b) {
    for (const std::string_view line : a) text_a += fmt::format("{}\n", line);
    for (const std::string_view line : b) text_b += fmt::format("{}\n", line);
  }
};

const std::function<bool()> kNeverStop;

CountingSink Diff(const LineList& a, const LineList& b) {
  const std::string text_a = Seal(a), text_b = Seal(b);
  const Input input_a = Input::Memory("A", text_a, kNeverStop);
  const Input input_b = Input::Memory("B", text_b, kNeverStop);
  const Declarations names_a = ReadDeclarations(input_a).value();
  const Declarations names_b = ReadDeclarations(input_b).value();
  const Pairing pairing(names_a, names_b);
  LineWindow window_a(LineFeed::Open(input_a).value(), pairing.a());
  LineWindow window_b(LineFeed::Open(input_b).value(), pairing.b());
  CountingSink sink;
  EXPECT_TRUE(StreamDifferences(&window_a, &window_b, pairing.identity(), &sink));
  std::string whole_a, whole_b;
  for (const std::string& line : a) whole_a += line + "\n";
  for (const std::string& line : b) whole_b += line + "\n";
  EXPECT_TRUE(sink.text_a == whole_a) << "side A is not given whole and in order";
  EXPECT_TRUE(sink.text_b == whole_b) << "side B is not given whole and in order";
  return sink;
}

// `count` lines, of which every fifth is like no other and the rest repeat.
LineList Lines(size_t count, const std::string& mark) {
  LineList lines = {"buffer #0 size=8 kind=kv"};
  for (size_t i = 0; i < count; ++i) {
    lines.push_back(i % 5 == 0 ? fmt::format("read #0[0,{}{})", mark, i)
                               : std::string(i % 5 == 1 ? "wait" : "begin"));
  }
  return lines;
}

LineList Inserted(LineList lines, size_t at, const LineList& more) {
  lines.insert(lines.begin() + static_cast<ptrdiff_t>(at), more.begin() + 1, more.end());
  return lines;
}

TEST(DifferTest, C5_CommonBeginningsAndEndsArePassedOverAsBytes) {
  const LineList a = Lines(100000, "1");
  const CountingSink sink = Diff(a, Inserted(a, 50000, {"", "read #0[0,7)"}));
  EXPECT_EQ(sink.only_b, 1U);
  EXPECT_EQ(sink.only_a, 0U);
  EXPECT_LE(sink.equal, 5000U);  // A window around the insertion.
}

TEST(DifferTest, InsertionsOfAllLengthsAreFoundWhole) {
  const LineList a = Lines(20000, "1");
  for (const size_t length : {1U, 100U, 128U, 129U, 1000U, 4096U, 5000U, 70000U, 150000U}) {
    for (const size_t at : {size_t{1}, size_t{9999}, a.size() - 8, a.size()}) {
      const CountingSink sink = Diff(a, Inserted(a, at, Lines(length, "2")));
      EXPECT_EQ(sink.only_a, 0U) << length << " lines at " << at;
      EXPECT_EQ(sink.only_b, length) << length << " lines at " << at;
    }
  }
}

TEST(DifferTest, InsertionThatAWindowCutsIsFoundWhole) {
  const LineList a = Lines(20000, "1");
  // The first edit opens a window that ends a little behind the beginning of the insertion.
  LineList b = Inserted(a, 4130, Lines(5000, "2"));
  b[101] = "write #0[0,1)";
  const CountingSink sink = Diff(a, b);
  EXPECT_EQ(sink.only_a, 1U);
  EXPECT_EQ(sink.only_b, 5001U);
}

TEST(DifferTest, ManyChangesStayAligned) {
  const LineList a = Lines(200000, "1");
  LineList b = a;
  size_t changed = 0;
  for (size_t i = 10; i < b.size(); i += 37) {
    b[i] = fmt::format("write #0[0,{})", i);
    ++changed;
  }
  const CountingSink sink = Diff(a, b);
  EXPECT_EQ(sink.only_a, changed);
  EXPECT_EQ(sink.only_b, changed);
}

TEST(DifferTest, AlternatingChangesWithoutUniqueLinesStayAligned) {
  LineList a = {"buffer #0 size=8 kind=kv"}, b = a;
  for (size_t i = 0; i < 100000; ++i) {
    a.push_back(i % 4 == 0 ? "wait" : "barrier");
    b.push_back(i % 4 == 0 ? "commit" : "barrier");
  }
  const CountingSink sink = Diff(a, b);
  EXPECT_EQ(sink.only_a, 25000U);
  EXPECT_EQ(sink.only_b, 25000U);
}

TEST(DifferTest, UnlikeTracesEnd) {
  const LineList a(150000, "wait"), b(2000000, "barrier");
  const CountingSink sink = Diff(a, b);
  EXPECT_EQ(sink.only_a, a.size());
  EXPECT_EQ(sink.only_b, b.size());
}

TEST(LineFeedTest, LinesStayUntilTheyAreReleased) {
  LineList lines;
  for (int i = 0; i < 60000; ++i) lines.push_back(fmt::format("read #0[{:0100},9)", i));
  const std::string text = Seal(lines);
  LineFeed feed = LineFeed::Open(Input::Memory("A", text, kNeverStop)).value();
  std::vector<std::string_view> given;
  std::string_view line;
  while (feed.Next(&line)) {
    given.push_back(line);
    // All but the first half of what was given is still needed.
    if (given.size() % 1000 == 0) feed.Release(given[given.size() / 2]);
  }
  ASSERT_EQ(given.size(), lines.size());
  for (size_t i = lines.size() / 2; i < lines.size(); ++i) ASSERT_EQ(given[i], lines[i]) << i;
}

TEST(RenumberTest, LongerSideIsNoRenumbering) {
  const LineList lines = Lines(10, "1");
  LineList longer = lines;
  longer.push_back("wait");
  const std::string text = Seal(lines), longer_text = Seal(longer);
  const Input a = Input::Memory("A", text, kNeverStop);
  const Input b = Input::Memory("B", longer_text, kNeverStop);
  EXPECT_TRUE(FindRenumbering(a, a).value());
  EXPECT_FALSE(FindRenumbering(a, b).value());
  EXPECT_FALSE(FindRenumbering(b, a).value());
}

}  // namespace
}  // namespace assay::compare
