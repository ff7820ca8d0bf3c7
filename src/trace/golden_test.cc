// The traces under tests/golden/traces, written by hand, and the example of the format's document.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

#include "base/file.h"
#include "support/trace_text.h"

namespace assay::trace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kFolder = fs::path(ASSAY_SOURCE_DIR) / "tests/golden/traces";

TEST(GoldenTraceTest, T13_EachIsWholeAndWritesBackToItsOwnBytes) {
  size_t found = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".trace") continue;
    const std::string text = ReadFile(entry.path().string()).value();
    const auto events = assay::testing::ReadAll(text);
    ASSERT_TRUE(events) << entry.path() << ": " << events.error().message();
    const int version = TraceReader::Open(entry.path().string()).value()->version();
    EXPECT_EQ(assay::testing::TextOf(version, *events), text) << entry.path();
    ++found;
  }
  EXPECT_EQ(found, 5U);
}

TEST(GoldenTraceTest, T13_TheCompressedOneIsTheSameTrace) {
  EXPECT_EQ(assay::testing::ReadAllOf(kFolder / "decode_step.trace.zst").value(),
            assay::testing::ReadAllOf(kFolder / "decode_step.trace").value());
}

TEST(GoldenTraceTest, T13_OddTextIsReadAsTheBytesItStandsFor) {
  const auto events = assay::testing::ReadAllOf(kFolder / "odd_text.trace").value();
  EXPECT_EQ(std::get<BufferEvent>(events[2]).label,
            std::string("quote \" backslash \\ line\nfeed \0 \xff end", 37));
  EXPECT_EQ(std::get<KernelEvent>(events[5]).spec, "b=\"x y\"");
}

TEST(GoldenTraceTest, T12_TheBrokenOnesAreRefusedForTheirOwnReason) {
  const std::map<std::string, std::string> reasons = {
      {"changed.trace", "line 39: The end line says digest"},
      {"crlf.trace", "line 1, column 14: The line should end here, but found a carriage return"},
      {"cut.trace", "line 18: The file is cut short"},
      {"cut.trace.zst", "is damaged: it is cut short"},
      {"nul.trace", "line 6, column 1: Expected the name of an event here, but found \"\\x00\""},
      {"torn.trace", "line 21: A second trace begins here: the file is torn"},
      {"unsealed.trace", "line 39: The file is cut short: it has no end line"},
      {"version_3.trace", "line 1: The trace has version 3; versions 1 and 2 can be read"},
  };
  std::map<std::string, std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder / "broken")) {
    const auto events = assay::testing::ReadAllOf(entry.path().string());
    ASSERT_FALSE(events) << entry.path();
    found[entry.path().filename().string()] = events.error().message();
  }
  ASSERT_EQ(found.size(), reasons.size());
  for (const auto& [name, reason] : reasons) EXPECT_THAT(found[name], HasSubstr(reason)) << name;
}

TEST(FormatDocumentTest, T13_TheExampleIsAWholeTrace) {
  const std::string document =
      ReadFile((fs::path(ASSAY_SOURCE_DIR) / "docs/trace-format.md").string()).value();
  const size_t begin = document.find("assay-trace 2\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string example = document.substr(begin, document.find("```", begin) - begin);
  const auto events = assay::testing::ReadAll(example);
  ASSERT_TRUE(events) << events.error().message();
  EXPECT_EQ(assay::testing::TextOf(2, *events), example);
}

TEST(FormatDocumentTest, T13_EveryEventHasARow) {
  const std::string document =
      ReadFile((fs::path(ASSAY_SOURCE_DIR) / "docs/trace-format.md").string()).value();
#define ASSAY_TRACE_EVENT(word, Type) EXPECT_THAT(document, HasSubstr("\n| `" word));
#include "trace/events.def"
#undef ASSAY_TRACE_EVENT
  for (size_t i = 0; i < kRefusalCount; ++i) {
    EXPECT_THAT(document,
                HasSubstr("\n| `" + std::string(RefusalName(static_cast<Refusal>(i))) + "` |"));
  }
}

}  // namespace
}  // namespace assay::trace
