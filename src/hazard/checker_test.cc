#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/hazard.h"
#include "assay/trace.h"

namespace assay::hazard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using trace::BufferAccess;
using trace::BufferId;
using trace::KernelId;

// Feeds a checker; each event stands in a line of its own.
class Feed {
 public:
  explicit Feed(const Options& options = {}) : checker_(options) {}

  Status Try(const trace::Event& event) { return checker_.Add(event, ++line_); }
  void Add(const trace::Event& event) {
    const Status status = Try(event);
    ASSERT_TRUE(status.has_value()) << status.error().ToString();
  }
  void Buffer(uint64_t id, uint64_t size, std::string label = "") {
    Add(trace::BufferEvent{.buffer = BufferId(id),
                           .size_bytes = size,
                           .kind = BufferKind::kScratch,
                           .label = std::move(label),
                           .digest = "00"});
  }
  void Kernel(uint32_t id, std::string name) {
    Add(trace::KernelEvent{.kernel = KernelId(id),
                           .name = std::move(name),
                           .digest = "00",
                           .workgroup = {},
                           .spec = "",
                           .shared_bytes = 0});
  }
  void Dispatch(std::vector<BufferAccess> accesses, uint32_t kernel = 0) {
    trace::DispatchEvent event;
    event.kernel = KernelId(kernel);
    event.accesses = std::move(accesses);
    Add(event);
  }
  void Begin() { Add(trace::BeginEvent{}); }
  void Barrier() { Add(trace::BarrierEvent{}); }
  void Commit() { Add(trace::CommitEvent{}); }
  void Wait() { Add(trace::WaitEvent{}); }
  Report Finish() { return checker_.Finish(); }

 private:
  Checker checker_;
  uint64_t line_ = 0;
};

BufferAccess ReadOf(uint64_t buffer, uint64_t begin, uint64_t end) {
  return {Access::kRead, BufferId(buffer), {begin, end}, true};
}
BufferAccess WriteOf(uint64_t buffer, uint64_t begin, uint64_t end) {
  return {Access::kWrite, BufferId(buffer), {begin, end}, true};
}

uint64_t CountOf(const Report& report, Category category) {
  return report.certain[static_cast<size_t>(category)];
}

TEST(Checker, H1_SixtyFourWritesInARowAreSixtyThreePairs) {
  for (const bool with_barriers : {false, true}) {
    Feed feed;
    feed.Buffer(0, 256);
    feed.Begin();
    for (int i = 0; i < 64; ++i) {
      if (with_barriers && i > 0) feed.Barrier();
      feed.Dispatch({WriteOf(0, 0, 256)});
    }
    feed.Commit();
    const Report report = feed.Finish();
    EXPECT_EQ(CountOf(report, Category::kWaw), with_barriers ? 0U : 63U);
    EXPECT_EQ(report.hazards(), with_barriers ? 0U : 63U);
    EXPECT_EQ(report.barriers.least, 63U);
    EXPECT_EQ(report.barriers.redundant, 0U);
  }
}

// Kind 7 of docs/faults.md: a list of barriers of a fixed size.
TEST(Checker, H1_CountsAreRightAroundEveryPowerOfTwo) {
  for (uint64_t readers = 1; readers <= 4098; ++readers) {
    const bool near_power = (readers & (readers - 1)) == 0 || ((readers + 1) & readers) == 0 ||
                            ((readers - 1) & (readers - 2)) == 0;
    if (!near_power) continue;
    Feed feed;
    feed.Buffer(0, 16);
    feed.Begin();
    for (uint64_t i = 0; i < readers; ++i) feed.Dispatch({ReadOf(0, 0, 16)});
    feed.Dispatch({WriteOf(0, 4, 8)});
    feed.Commit();
    const Report report = feed.Finish();
    ASSERT_EQ(CountOf(report, Category::kWar), readers);
    ASSERT_EQ(report.barriers.least, 1U);
    ASSERT_EQ(report.best_suggestion->before.dispatch, readers + 1);
    ASSERT_EQ(report.best_suggestion->closes_certain, readers);
  }
}

TEST(Checker, H1_FindingNamesBothDispatches) {
  Feed feed;
  feed.Buffer(7, 64, "tmp");
  feed.Kernel(3, "add_f32");
  feed.Kernel(4, "mul_f32");
  feed.Begin();
  feed.Commit();
  feed.Begin();
  feed.Dispatch({WriteOf(7, 8, 32)}, 3);
  feed.Dispatch({ReadOf(7, 0, 24)}, 4);
  feed.Commit();
  const Report report = feed.Finish();
  ASSERT_THAT(report.findings, SizeIs(1));
  const Finding& finding = report.findings[0];
  EXPECT_EQ(finding.rule, Rule::kReadAfterWrite);
  EXPECT_TRUE(finding.certain);
  EXPECT_EQ(finding.first.line, 7U);
  EXPECT_EQ(finding.first.command_buffer, 2U);
  EXPECT_EQ(finding.first.dispatch, 1U);
  EXPECT_EQ(finding.first.kernel, "add_f32");
  EXPECT_EQ(finding.second.line, 8U);
  EXPECT_EQ(finding.second.dispatch, 2U);
  EXPECT_EQ(finding.second.kernel, "mul_f32");
  EXPECT_EQ(finding.buffer, BufferId(7));
  EXPECT_EQ(finding.label, "tmp");
  EXPECT_EQ(finding.range, (ByteRange{8, 24}));
}

TEST(Checker, FingerprintsDoNotMoveWhenEventsAreAddedElsewhere) {
  std::vector<Fingerprint> seen[2];
  for (const bool crowded : {false, true}) {
    Feed feed;
    if (crowded) feed.Buffer(9, 64, "other");
    feed.Buffer(crowded ? 10 : 0, 64, "tmp");
    feed.Kernel(crowded ? 1 : 0, "k");
    const uint64_t tmp = crowded ? 10 : 0;
    feed.Begin();
    if (crowded) {
      feed.Dispatch({WriteOf(9, 0, 64)}, 1);
      feed.Barrier();
      feed.Dispatch({ReadOf(9, 0, 64)}, 1);
    }
    const uint32_t kernel = crowded ? 1 : 0;
    const uint64_t begin = crowded ? 16 : 0;
    feed.Dispatch({WriteOf(tmp, begin, begin + 16)}, kernel);
    feed.Dispatch({WriteOf(tmp, begin, begin + 16)}, kernel);
    feed.Dispatch({ReadOf(tmp, begin, begin + 16)}, kernel);
    feed.Commit();
    for (const Finding& finding : feed.Finish().findings) {
      seen[crowded ? 1 : 0].push_back(finding.fingerprint);
    }
  }
  ASSERT_THAT(seen[0], SizeIs(2));
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0][0].identity, seen[0][1].identity);
}

// Three findings of one identity.
Report CheckThreeAlike(const Options& options) {
  Feed feed(options);
  feed.Buffer(0, 64, "tmp");
  feed.Kernel(0, "k");
  feed.Begin();
  for (int i = 0; i < 4; ++i) feed.Dispatch({WriteOf(0, 0, 64)});
  feed.Commit();
  return feed.Finish();
}

TEST(Checker, SuppressedFindingsCountForNothing) {
  const Report plain = CheckThreeAlike({});
  ASSERT_THAT(plain.findings, SizeIs(3));
  EXPECT_EQ(plain.findings[2].fingerprint.occurrence, 3U);
  const uint64_t identity = plain.findings[0].fingerprint.identity;

  Options one;
  one.suppressions = {{identity, 2}, {identity, 9}, {1, 0}};
  const Report report = CheckThreeAlike(one);
  EXPECT_EQ(report.hazards(), 2U);
  EXPECT_EQ(report.suppressed, 1U);
  EXPECT_THAT(report.unused_suppressions, ElementsAre(Fingerprint{1, 0}, Fingerprint{identity, 9}));
  ASSERT_THAT(report.findings, SizeIs(3));
  EXPECT_TRUE(report.findings[1].suppressed);
  // The suggested barriers are for the pairs that count.
  EXPECT_EQ(report.suggestion_count, 2U);
  EXPECT_THAT(FormatText(report, one), HasSubstr("suppressed waw "));
  EXPECT_THAT(FormatText(report, one), HasSubstr("matched nothing"));
  EXPECT_THAT(FormatSarif(report, one), HasSubstr("\"suppressions\":[{\"kind\":\"external\"}]"));

  Options all;
  all.suppressions = {{identity, 0}};
  const Report none = CheckThreeAlike(all);
  EXPECT_EQ(none.hazards(), 0U);
  EXPECT_EQ(none.suppressed, 3U);
  EXPECT_EQ(ExitStatus(none, all), 0);
  EXPECT_THAT(none.unused_suppressions, IsEmpty());
}

TEST(Checker, FindingsBeyondTheLimitAreCounted) {
  Options options;
  options.max_listed = 2;
  const Report report = CheckThreeAlike(options);
  EXPECT_EQ(report.hazards(), 3U);
  EXPECT_THAT(report.findings, SizeIs(2));
  EXPECT_THAT(FormatText(report, options), HasSubstr("... and 1 more findings"));
  EXPECT_EQ(ExitStatus(report, options), 1);
  options.max_listed = 0;
  EXPECT_EQ(ExitStatus(CheckThreeAlike(options), options), 1);
}

TEST(Checker, PossibleFindingsDecideOnlyWhenStrict) {
  Feed feed;
  feed.Buffer(0, 64);
  feed.Begin();
  feed.Dispatch({WriteOf(0, 0, 64)});
  feed.Dispatch({{Access::kRead, BufferId(0), {0, 64}, false}});
  feed.Commit();
  const Report report = feed.Finish();
  EXPECT_EQ(report.hazards(), 0U);
  EXPECT_EQ(report.possible, 1U);
  Options strict;
  strict.strict = true;
  EXPECT_EQ(ExitStatus(report, {}), 0);
  EXPECT_EQ(ExitStatus(report, strict), 1);
}

TEST(Checker, H3_InexactBindingsMakePossibleFindingsOnly) {
  Feed feed;
  feed.Buffer(0, 64);
  feed.Buffer(1, 64);
  feed.Add(trace::FreeEvent{BufferId(1)});
  feed.Begin();
  feed.Dispatch({{Access::kRead, BufferId(0), {0, 65}, false},
                 {Access::kWrite, BufferId(0), {8, 16}, true},
                 {Access::kRead, BufferId(1), {0, 8}, false}});
  feed.Commit();
  feed.Add(trace::HostWriteEvent{BufferId(0), {32, 40}});
  const Report report = feed.Finish();
  EXPECT_EQ(report.hazards(), 0U);
  std::vector<Rule> rules;
  for (const Finding& finding : report.findings) rules.push_back(finding.rule);
  EXPECT_THAT(rules, ElementsAre(Rule::kOutOfBounds, Rule::kUseAfterFree, Rule::kSelfOverlap,
                                 Rule::kHostWrite));
}

TEST(Checker, SparseNamesCostNoMemory) {
  Feed feed;
  feed.Buffer(uint64_t{1} << 60, 64, "far");
  feed.Buffer(3, 64, "near");
  feed.Kernel(UINT32_MAX, "k");
  feed.Begin();
  feed.Dispatch({WriteOf(uint64_t{1} << 60, 0, 64)}, UINT32_MAX);
  feed.Dispatch({ReadOf(uint64_t{1} << 60, 0, 64), ReadOf(3, 0, 64)}, UINT32_MAX);
  feed.Commit();
  const Report report = feed.Finish();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].label, "far");
  EXPECT_EQ(report.findings[0].second.kernel, "k");
}

TEST(Checker, RefusesEventsThatNoReaderDelivers) {
  const auto refused_with = [](Feed& feed, const trace::Event& event, const std::string& part) {
    const Status status = feed.Try(event);
    ASSERT_FALSE(status.has_value()) << part;
    EXPECT_THAT(status.error().message(), HasSubstr(part));
  };
  Feed outside;
  outside.Buffer(0, 64);
  refused_with(outside, trace::DispatchEvent{}, "A dispatch stands outside a command buffer.");
  refused_with(outside, trace::BarrierEvent{}, "A barrier stands outside");
  refused_with(outside, trace::CommitEvent{}, "A commit stands outside");
  refused_with(outside, trace::HostReadEvent{BufferId(5), {0, 1}}, "Buffer #5 was not made.");
  refused_with(outside, trace::FreeEvent{BufferId(5)}, "Buffer #5 was not made.");
  refused_with(outside, trace::BufferEvent{.buffer = BufferId(0), .label = "", .digest = ""},
               "Buffer #0 is made a second time.");
  outside.Begin();
  refused_with(outside, trace::BeginEvent{}, "A begin stands inside");
  refused_with(outside, trace::WaitEvent{}, "A wait stands inside");
  trace::DispatchEvent crowded;
  crowded.accesses.assign(4097, ReadOf(0, 0, 1));
  refused_with(outside, crowded, "more accesses (4097) than can be checked (4096)");
}

// H4: a program that never waits keeps every range in flight. The checker joins the old ones, and
// still finds what the host does to each byte of them.
TEST(Checker, H4_HostRulesHoldOverThousandsOfRangesInFlight) {
  constexpr uint64_t kRows = 5000;
  Feed feed;
  feed.Buffer(0, 2 * kRows);
  feed.Kernel(0, "k");
  for (uint64_t row = 0; row < kRows; ++row) {
    feed.Begin();
    feed.Dispatch({WriteOf(0, 2 * row, 2 * row + 1)});
    feed.Barrier();
    if (row > 0) feed.Dispatch({ReadOf(0, 0, 2 * row - 1)});
    feed.Commit();
  }
  feed.Add(trace::HostReadEvent{BufferId(0), {0, 2 * kRows}});
  const Report report = feed.Finish();
  uint64_t bytes = 0;
  for (const Finding& finding : report.findings) {
    ASSERT_EQ(finding.rule, Rule::kHostRead);
    ASSERT_TRUE(finding.certain);
    ASSERT_NE(finding.first.line, 0U);
    bytes += finding.range.size();
  }
  EXPECT_EQ(bytes, kRows);
}

// H4: dispatches are forgotten only when nothing can name them.
TEST(Checker, H4_AFindingNamesADispatchFarBack) {
  Feed feed;
  feed.Buffer(0, 64, "old");
  feed.Buffer(1, 64, "busy");
  feed.Kernel(0, "k");
  feed.Begin();
  feed.Dispatch({WriteOf(0, 0, 64)});
  feed.Commit();
  for (int i = 0; i < 600'000; ++i) {
    feed.Begin();
    feed.Dispatch({WriteOf(1, 0, 64)});
    feed.Commit();
  }
  feed.Add(trace::FreeEvent{BufferId(0)});
  const Report report = feed.Finish();
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].rule, Rule::kFreeInFlight);
  EXPECT_EQ(report.findings[0].first.line, 5U);
  EXPECT_EQ(report.findings[0].first.kernel, "k");
}

TEST(CheckTraceText, T12_WhatTheReaderRefusesIsAnError) {
  const Result<Report> report =
      CheckTraceText("assay-trace 2\nbuffer #0 size=64 kind=host\n", "cut.trace", {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), ErrorCode::kFormat);
  EXPECT_THAT(report.error().message(), HasSubstr("cut.trace"));
}

TEST(CheckTrace, AMissingFileIsAnError) {
  const Result<Report> report = CheckTrace("/does/not/exist.trace", {});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), ErrorCode::kNotFound);
}

TEST(SummaryLine, HasEveryCount) {
  Report report;
  report.certain = {1, 2, 3, 4, 5, 6, 7};
  report.possible = 8;
  report.barriers = {.issued = 9, .redundant = 10, .least = 11};
  EXPECT_EQ(SummaryLine(report, 1),
            "check: rc 1; hazards 28 (raw 1, war 2, waw 3, host 4, lifetime 5, bounds 6, self 7); "
            "possible 8; barriers issued 9 redundant 10 least 11\n");
}

}  // namespace
}  // namespace assay::hazard
