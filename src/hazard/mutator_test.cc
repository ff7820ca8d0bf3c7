// The mutator against a full check of every mutant, and against the redundant barriers of a check.
#include "hazard/mutator.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/hazard.h"
#include "assay/trace.h"

#include "hazard/oracle_testing.h"
#include "hazard/trace_maker_testing.h"
#include "support/trace_text.h"

namespace assay::hazard {
namespace {

using ::testing::HasSubstr;
using trace::Event;

// Leaves out the event at `skip`, whose line number is kept free.
template <typename Judge>
auto Feed(Judge& judge, const std::vector<Event>& events, size_t skip = SIZE_MAX) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (i == skip) continue;
    EXPECT_TRUE(judge.Add(events[i], i + 1).has_value());
  }
  return judge.Finish();
}

PlainReport Check(const std::vector<Event>& events, size_t skip = SIZE_MAX) {
  Checker checker({});
  return ToPlain(Feed(checker, events, skip));
}

bool IsPair(Rule rule) {
  return rule == Rule::kReadAfterWrite || rule == Rule::kWriteAfterRead ||
         rule == Rule::kWriteAfterWrite;
}

// The pairs that a full check finds when line `line` is left out, and only then.
std::vector<PlainFinding> PairsOfMutant(const std::vector<Event>& events, uint64_t line,
                                        const PlainReport& whole) {
  std::vector<PlainFinding> pairs;
  for (const PlainFinding& finding : Check(events, line - 1).findings) {
    if (!IsPair(finding.rule)) continue;
    const bool was_there = std::ranges::any_of(whole.findings, [&](const PlainFinding& other) {
      return IsPair(other.rule) && other.first_line == finding.first_line &&
             other.second_line == finding.second_line;
    });
    if (!was_there) pairs.push_back(finding);
  }
  return pairs;
}

// Holds when one of `pairs` is what the mutant names.
bool Names(const std::vector<PlainFinding>& pairs, const Finding& named) {
  const int64_t buffer = named.buffer ? static_cast<int64_t>(named.buffer->value()) : -1;
  return std::ranges::any_of(pairs, [&](const PlainFinding& pair) {
    return pair.rule == named.rule && pair.certain == named.certain &&
           pair.first_line == named.first.line && pair.second_line == named.second.line &&
           pair.buffer == buffer && pair.begin <= named.range.begin && named.range.end <= pair.end;
  });
}

struct Tally {
  size_t killed = 0;
  size_t possible = 0;
  size_t survived = 0;
};

void ExpectAgreement(const std::vector<Event>& events, Tally* tally) {
  const PlainReport whole = Check(events);
  Mutator mutator;
  const MutationReport report = Feed(mutator, events);
  std::set<uint64_t> survivors;
  uint64_t killed = 0;
  uint64_t killed_possible = 0;
  for (const Mutant& mutant : report.mutants) {
    ASSERT_TRUE(std::holds_alternative<trace::BarrierEvent>(events[mutant.line - 1]));
    const std::vector<PlainFinding> pairs = PairsOfMutant(events, mutant.line, whole);
    ASSERT_EQ(mutant.killed(), !pairs.empty()) << "line " << mutant.line << "\n" << Listing(events);
    if (!mutant.killed()) {
      survivors.insert(mutant.line);
      continue;
    }
    ++killed;
    killed_possible += mutant.pair->certain ? 0 : 1;
    ASSERT_TRUE(Names(pairs, *mutant.pair))
        << "line " << mutant.line << " names lines " << mutant.pair->first.line << " and "
        << mutant.pair->second.line << ", rule " << RuleName(mutant.pair->rule) << ", bytes "
        << mutant.pair->range.begin << " to " << mutant.pair->range.end << "\n"
        << ::testing::PrintToString(pairs) << "\n"
        << Listing(events);
    ASSERT_EQ(mutant.pair->certain,
              std::ranges::any_of(pairs, [](const auto& pair) { return pair.certain; }));
  }
  ASSERT_EQ(report.mutants.size(), std::ranges::count_if(events, [](const Event& event) {
              return std::holds_alternative<trace::BarrierEvent>(event);
            }));
  ASSERT_EQ(survivors, whole.redundant_barrier_lines) << Listing(events);
  ASSERT_EQ(survivors, OracleCheck(events).redundant_barrier_lines) << Listing(events);
  ASSERT_EQ(report.killed, killed);
  ASSERT_EQ(report.killed_possible, killed_possible);
  ASSERT_EQ(report.survived(), survivors.size());
  tally->killed += killed;
  tally->possible += killed_possible;
  tally->survived += survivors.size();
}

TEST(Mutator, E9_SurvivorsAreTheRedundantBarriersAndAFullCheckAgrees) {
  EXPECT_TRUE(rc::check([](const std::vector<std::vector<uint8_t>>& recipes) {
    Tally tally;
    ExpectAgreement(MakeTrace(recipes), &tally);
    RC_ASSERT(!::testing::Test::HasFatalFailure());
  }));
}

// The same on many more traces, and longer ones, than a property tries.
TEST(Mutator, E9_AFullCheckAgreesOnThousandsOfMutants) {
  std::mt19937_64 engine(3);
  Tally tally;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::vector<uint8_t>> recipes(5 + engine() % 60);
    for (std::vector<uint8_t>& recipe : recipes) {
      recipe.resize(1 + engine() % 20);
      for (uint8_t& byte : recipe) byte = static_cast<uint8_t>(engine());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement(MakeTrace(recipes), &tally)) << "round " << round;
  }
  EXPECT_GT(tally.killed - tally.possible, 100U);
  EXPECT_GT(tally.possible, 100U);
  EXPECT_GT(tally.survived, 100U);
}

std::string Golden(const std::string& name) {
  return std::string(ASSAY_SOURCE_DIR) + "/tests/golden/hazard/" + name;
}

TEST(Mutator, E9_NamesThePairThatABarrierOrders) {
  const MutationReport report = MutateTrace(Golden("raw_near.trace")).value();
  ASSERT_EQ(report.mutants.size(), 0U);
  const MutationReport redundant = MutateTrace(Golden("redundant.trace")).value();
  EXPECT_EQ(redundant.survived(), 2U);
  EXPECT_GT(redundant.killed, 0U);
  for (const Mutant& mutant : redundant.mutants) {
    if (!mutant.killed()) continue;
    EXPECT_FALSE(mutant.pair->label.empty());
    EXPECT_FALSE(mutant.pair->first.kernel.empty());
    EXPECT_GT(mutant.pair->range.size(), 0U);
  }
}

TEST(Mutator, E9_SaysHowManyHazardsThereAreWithAllBarriers) {
  for (const char* name : {"raw.trace", "raw_near.trace", "redundant.trace"}) {
    EXPECT_EQ(MutateTrace(Golden(name)).value().hazards,
              CheckTrace(Golden(name), {}).value().hazards())
        << name;
  }
  EXPECT_GT(MutateTrace(Golden("raw.trace")).value().hazards, 0U);
}

TEST(Mutator, E12_StopsWhenItIsAskedTo) {
  const auto stopped = MutateTrace(Golden("raw.trace"), [] { return true; });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
}

TEST(Mutator, T7_ARefusedTraceProvesNothing) {
  const MutationReport report = MutateTrace(Golden("refused.trace")).value();
  EXPECT_THAT(report.refused, HasSubstr("it proves nothing"));
  EXPECT_TRUE(report.mutants.empty());
}

TEST(Mutator, T12_ATraceThatIsCutShortIsAnError) {
  const auto report = MutateTraceText("assay-trace 2\nbegin\n", "cut.trace");
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), ErrorCode::kFormat);
}

TEST(Mutator, AnUnknownBufferIsAnError) {
  Mutator mutator;
  trace::DispatchEvent dispatch;
  dispatch.accesses.push_back({Access::kRead, trace::BufferId(7), {0, 4}, true});
  const Status status = mutator.Add(dispatch, 12);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().ToString(), HasSubstr("Line 12: Buffer #7 was not made"));
}

}  // namespace
}  // namespace assay::hazard
