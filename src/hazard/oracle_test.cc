// The checker against brute force, on random traces.
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/hazard.h"
#include "assay/trace.h"

#include "hazard/checker_state.h"
#include "hazard/oracle_testing.h"
#include "hazard/trace_maker_testing.h"
#include "support/trace_text.h"

namespace assay::hazard {
namespace {

using trace::Event;

// Leaves out the event at `skip`, whose line number is kept free.
Report Feed(Checker& checker, const std::vector<Event>& events, size_t skip = SIZE_MAX) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (i == skip) continue;
    const Status status = checker.Add(events[i], i + 1);
    EXPECT_TRUE(status.has_value());
  }
  return checker.Finish();
}

Report CheckEvents(const std::vector<Event>& events, size_t skip = SIZE_MAX) {
  Checker checker({});
  return Feed(checker, events, skip);
}

// Findings about the host's accesses, byte by byte, without the dispatch that is named.
PlainReport WithHostFindingsByByte(const PlainReport& report) {
  PlainReport plain = report;
  std::set<PlainFinding> bytes;
  std::erase_if(plain.findings, [&bytes](const PlainFinding& finding) {
    if (CategoryOf(finding.rule) != Category::kHost) return false;
    for (uint64_t x = finding.begin; x < finding.end; ++x) {
      PlainFinding byte = finding;
      byte.first_line = 0;
      byte.begin = x;
      byte.end = x + 1;
      bytes.insert(byte);
    }
    return true;
  });
  plain.findings.insert(bytes.begin(), bytes.end());
  return plain;
}

std::vector<std::vector<uint8_t>> RandomRecipes(std::mt19937_64& engine) {
  std::vector<std::vector<uint8_t>> recipes(5 + engine() % 60);
  for (std::vector<uint8_t>& recipe : recipes) {
    recipe.resize(1 + engine() % 20);
    for (uint8_t& byte : recipe) byte = static_cast<uint8_t>(engine());
  }
  return recipes;
}

}  // namespace

class CheckerTestPeer {
 public:
  // A checker that forgets as early as it may.
  static std::unique_ptr<Checker> MakeForgetful() {
    auto checker = std::make_unique<Checker>(Options{});
    checker->state_ = std::make_unique<Checker::State>(
        Options{}, CheckerLimits{.ranges_kept_apart = 0, .dispatches_kept = 0});
    return checker;
  }
};

namespace {

RC_GTEST_PROP(Oracle, H1_H2_H3_CheckerAgreesWithBruteForce,
              (const std::vector<std::vector<uint8_t>>& recipes)) {
  const std::vector<Event> events = MakeTrace(recipes);
  const PlainReport expected = OracleCheck(events);
  const PlainReport actual = ToPlain(CheckEvents(events));
  RC_LOG() << Listing(events) << "expected\n" << expected << "actual\n" << actual;
  RC_CLASSIFY(!expected.findings.empty());
  RC_CLASSIFY(!expected.redundant_barrier_lines.empty());
  RC_CLASSIFY(expected.least_barriers > 1);
  RC_ASSERT(actual == expected);
}

// The same on many more traces, and longer ones, than a property tries.
TEST(Oracle, H1_H2_H3_CheckerAgreesWithBruteForceOnThousandsOfTraces) {
  std::mt19937_64 engine(1);
  for (int round = 0; round < 1000; ++round) {
    const std::vector<Event> events = MakeTrace(RandomRecipes(engine));
    const PlainReport expected = OracleCheck(events);
    const PlainReport actual = ToPlain(CheckEvents(events));
    ASSERT_EQ(actual, expected) << "round " << round << "\n" << Listing(events);
  }
}

// Joining old ranges and forgetting old dispatches changes nothing but which dispatch the rules of
// the host name.
TEST(Oracle, H4_ForgettingEarlyLosesNoFinding) {
  std::mt19937_64 engine(2);
  for (int round = 0; round < 1000; ++round) {
    const std::vector<Event> events = MakeTrace(RandomRecipes(engine));
    const PlainReport expected = ToPlain(CheckEvents(events));
    const std::unique_ptr<Checker> forgetful = CheckerTestPeer::MakeForgetful();
    const Report report = Feed(*forgetful, events);
    for (const Finding& finding : report.findings) {
      ASSERT_NE(finding.second.line, 0U);
      ASSERT_EQ(finding.first.line == 0, finding.rule == Rule::kOutOfBounds);
    }
    ASSERT_EQ(WithHostFindingsByByte(ToPlain(report)), WithHostFindingsByByte(expected))
        << "round " << round << "\n"
        << Listing(events);
  }
}

// Neighbours of which the host rules say different things: written perhaps, read, written, and each
// of them last.
TEST(Oracle, H4_JoinedRangesAgreeOnEveryHostRule) {
  using trace::BufferAccess;
  const std::vector<BufferAccess> uses = {{Access::kRead, trace::BufferId(0), {}, false},
                                          {Access::kRead, trace::BufferId(0), {}, true},
                                          {Access::kWrite, trace::BufferId(0), {}, false},
                                          {Access::kWrite, trace::BufferId(0), {}, true}};
  std::vector<Event> events = {trace::BufferEvent{.buffer = trace::BufferId(0),
                                                  .size_bytes = 64,
                                                  .kind = BufferKind::kOther,
                                                  .label = "",
                                                  .digest = "00"}};
  uint64_t at = 0;
  const auto dispatch = [&](BufferAccess access) {
    events.push_back(trace::BeginEvent{});
    access.range = {at, at + 1};
    trace::DispatchEvent event;
    event.accesses = {access};
    events.push_back(event);
    events.push_back(trace::CommitEvent{});
  };
  for (const BufferAccess& a : uses) {
    for (const BufferAccess& b : uses) {
      dispatch(a);
      ++at;
      dispatch(b);
      ++at;
    }
  }
  at = 40;
  dispatch(uses[1]);
  events.push_back(trace::HostReadEvent{trace::BufferId(0), {0, 64}});
  events.push_back(trace::HostWriteEvent{trace::BufferId(0), {0, 64}});
  const std::unique_ptr<Checker> forgetful = CheckerTestPeer::MakeForgetful();
  const PlainReport report = ToPlain(Feed(*forgetful, events));
  EXPECT_LT(report.findings.size(), ToPlain(CheckEvents(events)).findings.size());
  EXPECT_EQ(WithHostFindingsByByte(report), WithHostFindingsByByte(OracleCheck(events)));
}

TEST(Oracle, H1_ATraceReadFromTextGivesTheSameReport) {
  std::mt19937_64 engine(3);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Event> events = MakeTrace(RandomRecipes(engine));
    const std::string text = assay::testing::TextOf(trace::kCurrentVersion, events);
    Result<Report> read = CheckTraceText(text, "t", {});
    ASSERT_TRUE(read.has_value()) << read.error().ToString();
    // The first event stands in line 2.
    std::vector<Event> shifted = events;
    shifted.insert(shifted.begin(), trace::MetaEvent{.key = "k", .value = "v"});
    Report direct = CheckEvents(shifted);
    direct.name = "t";
    direct.version = trace::kCurrentVersion;
    ASSERT_EQ(FormatJson(*read, {}), FormatJson(direct, {}));
  }
}

// E9: the mutants that survive are the barriers that are called redundant.
RC_GTEST_PROP(Oracle, H2_ABarrierIsRedundantExactlyWhenDroppingItAddsNoFinding,
              (const std::vector<std::vector<uint8_t>>& recipes)) {
  const std::vector<Event> events = MakeTrace(recipes);
  const Report whole = CheckEvents(events);
  const PlainReport plain = ToPlain(whole);
  for (size_t i = 0; i < events.size(); ++i) {
    if (!std::holds_alternative<trace::BarrierEvent>(events[i])) continue;
    const Report mutant = CheckEvents(events, i);
    const bool survives = mutant.hazards() + mutant.possible == whole.hazards() + whole.possible;
    RC_ASSERT(survives == plain.redundant_barrier_lines.contains(i + 1));
    RC_ASSERT(mutant.barriers.least == whole.barriers.least);
  }
}

}  // namespace
}  // namespace assay::hazard
