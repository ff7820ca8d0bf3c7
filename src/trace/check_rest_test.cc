// Reading without making events finds the same as reading with.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

#include "support/trace_text.h"
#include "trace/known_lines.h"
#include "trace/quick_dispatch.h"

namespace assay::trace {
namespace {

using assay::testing::ReadAll;
using assay::testing::Sealed;
using ::testing::HasSubstr;

constexpr std::string_view kHead =
    "assay-trace 2\n"
    "buffer #0 size=64 kind=weight\n"
    "buffer #12 size=64 kind=host\n"
    "kernel k0 name=add digest=5c1f workgroup=64,1,1\n"
    "kernel k3 name=mul digest=5c1f workgroup=64,1,1\n";

// One step of a decode; what `%` stands for changes between steps.
constexpr std::string_view kStep =
    "begin\n"
    "dispatch k0 grid=1,2,3 shared=8 args=0123456789abcdef%% r#0[0,64) rw#12[%,6%)?\n"
    "barrier\n"
    "dispatch k3 grid=64,1,1\n"
    "dispatch k3 grid=1,1,1 w#12[5,64%)\n"
    "commit\n"
    "wait\n"
    "read #12[0,6%)\n";

std::string Step(std::string_view value) {
  std::string step;
  for (const char c : kStep) {
    if (c == '%') {
      step += value;
    } else {
      step += c;
    }
  }
  return step;
}

// How reading `text` ends: empty when it is a whole trace, else the error.
std::string EventByEvent(std::string_view text, const ReaderLimits& limits = {}) {
  const auto events = ReadAll(text, limits);
  return events ? "" : events.error().ToString();
}
std::string Quickly(std::string_view text, const ReaderLimits& limits = {}) {
  auto reader = TraceReader::FromMemory(text, "test", limits);
  if (!reader) return reader.error().ToString();
  const Status status = (*reader)->CheckRest();
  return status ? "" : status.error().ToString();
}

TEST(CheckRestTest, T12_EveryChangeOfAByteEndsAsItDoesEventByEvent) {
  const std::string steps = Step("1") + Step("1") + Step("2") + Step("10") + Step("11");
  const std::string lines = std::string(kHead) + steps + "free #12\n" + Step("3");
  ASSERT_EQ(EventByEvent(Sealed(lines)), "");
  ASSERT_EQ(Quickly(Sealed(lines)), "");
  constexpr std::string_view kBytes = " \n\r0123456789afgkrwz#[],)=?\"\x80";
  size_t taken = 0;
  for (size_t at = 0; at < lines.size(); ++at) {
    std::vector<std::string> changed = {lines, lines};
    changed[0].erase(at, 1);
    changed[1].insert(at, lines.substr(at, 1));
    for (const char byte : kBytes) {
      changed.push_back(lines);
      changed.back()[at] = byte;
    }
    for (const std::string& text : changed) {
      const std::string sealed = text.ends_with('\n') ? Sealed(text) : text;
      const std::string expected = EventByEvent(sealed);
      ASSERT_EQ(Quickly(sealed), expected) << text;
      taken += expected.empty() ? 1 : 0;
    }
  }
  EXPECT_GT(taken, lines.size());
}

TEST(CheckRestTest, T12_EveryLineLeftOutDoubledOrMovedEndsAsItDoesEventByEvent) {
  const std::string text = std::string(kHead) + Step("1") + Step("2") + Step("2") + "free #12\n" +
                           "refused off-thread: 1\n";
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size(); begin += lines.back().size()) {
    lines.push_back(text.substr(begin, text.find('\n', begin) + 1 - begin));
  }
  const auto check = [](const std::vector<std::string>& changed) {
    std::string joined;
    for (const std::string& line : changed) joined += line;
    const std::string sealed = Sealed(joined);
    ASSERT_EQ(Quickly(sealed), EventByEvent(sealed)) << joined;
  };
  for (size_t from = 0; from < lines.size(); ++from) {
    for (size_t to = 0; to < lines.size(); ++to) {
      std::vector<std::string> doubled = lines;
      doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(to), lines[from]);
      check(doubled);
      std::vector<std::string> swapped = lines;
      std::swap(swapped[from], swapped[to]);
      check(swapped);
    }
    std::vector<std::string> without = lines;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(from));
    check(without);
  }
}

TEST(CheckRestTest, T12_NumbersAtTheirLimitsEndAsTheyDoEventByEvent) {
  for (const std::string_view number :
       {"4294967295", "4294967296", "9999999999999999999", "10000000000000000000",
        "18446744073709551615", "18446744073709551616", "64", "65", "66", "00", "07", "268435455",
        "268435456"}) {
    for (const std::string_view line :
         {"dispatch k% grid=1,1,1", "dispatch k0 grid=%,1,1", "dispatch k0 grid=1,%,1",
          "dispatch k0 grid=1,1,%", "dispatch k0 grid=1,1,1 shared=%",
          "dispatch k0 grid=1,1,1 r#%[0,1)", "dispatch k0 grid=1,1,1 r#0[%,18446744073709551615)",
          "dispatch k0 grid=1,1,1 r#0[0,%)", "dispatch k0 grid=1,1,1 r#0[65,%)"}) {
      std::string with_number(line);
      with_number.replace(with_number.find('%'), 1, number);
      const std::string text =
          Sealed(std::string(kHead) + Step("1") + "begin\n" + with_number + "\ncommit\n");
      EXPECT_EQ(Quickly(text), EventByEvent(text)) << with_number;
    }
  }
}

TEST(CheckRestTest, T12_LongLinesAndTextsMeetTheSameLimits) {
  std::string lines(kHead);
  for (int i = 0; i < 2000; ++i) lines += Step(std::to_string(i % 7));
  const std::string text = Sealed(lines);
  for (uint64_t line_bytes = 40; line_bytes < 100; ++line_bytes) {
    const ReaderLimits limits{.max_line_bytes = line_bytes};
    EXPECT_EQ(Quickly(text, limits), EventByEvent(text, limits)) << line_bytes;
  }
  for (const uint64_t bytes : {1000, 70000, 300000}) {
    const ReaderLimits limits{.max_bytes = bytes};
    EXPECT_EQ(Quickly(text, limits), EventByEvent(text, limits)) << bytes;
  }
  EXPECT_EQ(Quickly(text), "");
}

TEST(CheckRestTest, T12_ADeclarationIsNoLineThatMayBeRepeated) {
  for (const std::string_view line :
       {"kernel k5 name=add digest=5c1f workgroup=64,1,1\n", "buffer #5 size=64 kind=host\n"}) {
    const std::string again = Step("1") + std::string(line);
    EXPECT_EQ(Quickly(Sealed(std::string(kHead) + again)), "");
    EXPECT_THAT(Quickly(Sealed(std::string(kHead) + again + again)), HasSubstr("second time"));
  }
}

TEST(CheckRestTest, T12_ALineMayBeCutAnywhereBetweenTwoReads) {
  // Whatever the sizes of the reads are, one ends at each byte of a step.
  std::string steps;
  while (steps.size() < size_t{400} << 10) steps += Step("10");
  for (size_t filler = 1; filler <= Step("10").size(); ++filler) {
    const std::string lines = std::string(kHead) + "buffer #1 size=1 kind=host label=\"" +
                              std::string(filler, 'x') + "\"\n" + steps;
    EXPECT_EQ(Quickly(Sealed(lines)), "") << filler;
  }
}

TEST(CheckRestTest, T12_ReadsOnFromAnyEventAndKnowsTheRefusals) {
  const std::string text =
      Sealed(std::string(kHead) + Step("1") + Step("2") +
             "begin\ndispatch k0 grid=1,1,1 r#?[0,1)\ncommit\n" +
             "begin\ndispatch k0 grid=1,1,1 r#?[0,1)\ncommit\n" + "refused off-thread: 2\n");
  const size_t events = ReadAll(text).value().size();
  for (size_t before = 0; before <= events + 1; ++before) {
    auto reader = TraceReader::FromMemory(text, "test").value();
    for (size_t i = 0; i < before; ++i) ASSERT_TRUE(reader->Next());
    ASSERT_TRUE(reader->CheckRest());
    EXPECT_EQ(reader->refusals(), std::vector({RefusedEvent{Refusal::kOffThread, 2}}));
    EXPECT_EQ(reader->Next().value(), std::nullopt);
    EXPECT_TRUE(reader->CheckRest());
  }
}

TEST(CheckRestTest, T12_AnErrorSticksAndStopEndsIt) {
  const std::string text = Sealed(std::string(kHead) + "commit\n");
  auto reader = TraceReader::FromMemory(text, "test").value();
  const std::string error = reader->CheckRest().error().ToString();
  EXPECT_THAT(error, HasSubstr("line 6"));
  EXPECT_EQ(reader->CheckRest().error().ToString(), error);
  EXPECT_EQ(reader->Next().error().ToString(), error);

  const std::string whole = Sealed(std::string(kHead));
  auto stopped = TraceReader::FromMemory(whole, "test").value();
  EXPECT_EQ(stopped->CheckRest([] { return true; }).error().code(), ErrorCode::kCancelled);
}

// What the quick way leaves to the parser is no error, so only this says that it takes anything.
TEST(QuickDispatchTest, C5_TakesTheLinesOfADecode) {
  NumberSet kernels, buffers;
  kernels.Insert(3);
  buffers.Insert(12);
  for (const std::string_view line :
       {"dispatch k3 grid=1,2,3 shared=8 args=00112233445566778899aabbccddeeff r#12[0,64)? "
        "w#12[5,5) rw#12[0,18)\n",
        "dispatch k3 grid=0,0,0\n", "dispatch k3 grid=1,1,1 args=ff\n"}) {
    const std::string text = std::string(line) + std::string(kQuickSlack, '\n');
    EXPECT_EQ(QuickDispatch(text.data(), kernels, buffers), text.data() + line.size()) << line;
  }
}

TEST(KnownLinesTest, C5_ARepeatedStepIsPassedUpToTheLineThatChanged) {
  KnownLines known;
  const auto take = [&](std::string_view step) {
    bool inside = false;
    for (size_t begin = 0; begin < step.size();) {
      const std::string_view line = step.substr(begin, step.find('\n', begin) + 1 - begin);
      known.Take(line, inside);
      inside = line == "begin\n" || (inside && line != "commit\n");
      begin += line.size();
    }
  };
  take(Step("1"));
  known.Take("begin\n", false);
  const std::string changed = Step("2").substr(6);
  EXPECT_EQ(known.Pass(changed, true).lines, 0U);
  const size_t first = changed.find('\n') + 1;
  known.Take(std::string_view(changed).substr(0, first), true);
  const KnownLines::Run run = known.Pass(std::string_view(changed).substr(first), true);
  EXPECT_EQ(run.lines, 2U);
  EXPECT_TRUE(run.inside);
  // The line that took the place of another of its size is known from here on.
  known.Take("begin\n", false);
  EXPECT_GE(known.Pass(changed, true).lines, 3U);
  // Outside a command buffer the same text is not known.
  known.Take("begin\n", false);
  EXPECT_EQ(known.Pass(changed, false).lines, 0U);
}

}  // namespace
}  // namespace assay::trace
