// The checker against brute force, on random traces.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "assay/hazard.h"
#include "assay/trace.h"

#include "hazard/oracle_for_test.h"

namespace assay::hazard {
namespace {

using trace::BufferId;
using trace::Event;
using trace::KernelId;

constexpr uint64_t kBufferBytes = 12;
constexpr size_t kMaxDispatches = 8;

// Reads small numbers from a recipe; past its end, zeros.
class Recipe {
 public:
  explicit Recipe(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  uint64_t Below(uint64_t limit) { return at_ < bytes_.size() ? bytes_[at_++] % limit : 0; }
  bool AtEnd() const { return at_ >= bytes_.size(); }

 private:
  const std::vector<uint8_t>& bytes_;
  size_t at_ = 0;
};

trace::BufferAccess MakeAccess(Recipe& recipe, uint64_t buffer_count) {
  constexpr Access kAccesses[] = {Access::kRead, Access::kWrite, Access::kReadWrite};
  trace::BufferAccess access;
  access.buffer = BufferId(recipe.Below(buffer_count));
  access.access = kAccesses[recipe.Below(3)];
  access.range.begin = recipe.Below(kBufferBytes);
  access.range.end = access.range.begin + recipe.Below(6);
  access.exact = recipe.Below(4) != 3;
  return access;
}

// Makes a trace out of any numbers: one recipe an event.
class TraceMaker {
 public:
  TraceMaker() {
    MakeBuffer("");
    MakeBuffer("");
    MakeBuffer("00ff");
    events_.push_back(trace::KernelEvent{.kernel = KernelId(0),
                                         .name = "k",
                                         .digest = "00",
                                         .workgroup = {},
                                         .spec = "",
                                         .shared_bytes = 0});
  }

  void Add(const std::vector<uint8_t>& bytes) {
    Recipe recipe(bytes);
    const uint64_t what = recipe.Below(16);
    if (open_) {
      AddInside(what, recipe);
    } else {
      AddOutside(what, recipe);
    }
  }
  std::vector<Event> Finish() {
    if (open_) events_.push_back(trace::CommitEvent{});
    open_ = false;
    return events_;
  }

 private:
  void MakeBuffer(const std::string& digest) {
    events_.push_back(trace::BufferEvent{.buffer = BufferId(buffer_count_++),
                                         .size_bytes = kBufferBytes,
                                         .kind = BufferKind::kScratch,
                                         .label = "",
                                         .digest = digest});
  }

  void AddInside(uint64_t what, Recipe& recipe) {
    if (what >= 14 || dispatches_ == kMaxDispatches) {
      events_.push_back(trace::CommitEvent{});
      open_ = false;
    } else if (what >= 11) {
      events_.push_back(trace::BarrierEvent{});
    } else {
      trace::DispatchEvent dispatch;
      if (what != 10) {
        do {
          dispatch.accesses.push_back(MakeAccess(recipe, buffer_count_));
        } while (!recipe.AtEnd() && dispatch.accesses.size() < 4);
      }
      events_.push_back(dispatch);
      ++dispatches_;
    }
  }

  void AddOutside(uint64_t what, Recipe& recipe) {
    if (what < 9) {
      events_.push_back(trace::BeginEvent{});
      open_ = true;
      dispatches_ = 0;
    } else if (what == 9) {
      events_.push_back(trace::WaitEvent{});
    } else if (what < 12) {
      const trace::BufferAccess access = MakeAccess(recipe, buffer_count_);
      events_.push_back(trace::HostReadEvent{access.buffer, access.range});
    } else if (what < 14) {
      const trace::BufferAccess access = MakeAccess(recipe, buffer_count_);
      events_.push_back(trace::HostWriteEvent{access.buffer, access.range});
    } else if (what == 14) {
      events_.push_back(trace::FreeEvent{BufferId(recipe.Below(buffer_count_))});
    } else {
      MakeBuffer("");
    }
  }

  std::vector<Event> events_;
  uint64_t buffer_count_ = 0;
  bool open_ = false;
  size_t dispatches_ = 0;
};

std::vector<Event> MakeTrace(const std::vector<std::vector<uint8_t>>& recipes) {
  TraceMaker maker;
  for (const std::vector<uint8_t>& recipe : recipes) maker.Add(recipe);
  return maker.Finish();
}

// Leaves out the event at `skip`, whose line number is kept free.
Report CheckEvents(const std::vector<Event>& events, size_t skip = SIZE_MAX) {
  Checker checker({});
  for (size_t i = 0; i < events.size(); ++i) {
    if (i == skip) continue;
    const Status status = checker.Add(events[i], i + 1);
    EXPECT_TRUE(status.has_value());
  }
  return checker.Finish();
}

std::string Listing(const std::vector<Event>& events) {
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    text += std::to_string(i + 1) + "  " + trace::FormatEvent(events[i]) + "\n";
  }
  return text;
}

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
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::vector<uint8_t>> recipes(5 + engine() % 60);
    for (std::vector<uint8_t>& recipe : recipes) {
      recipe.resize(1 + engine() % 20);
      for (uint8_t& byte : recipe) byte = static_cast<uint8_t>(engine());
    }
    const std::vector<Event> events = MakeTrace(recipes);
    const PlainReport expected = OracleCheck(events);
    const PlainReport actual = ToPlain(CheckEvents(events));
    ASSERT_EQ(actual, expected) << "round " << round << "\n" << Listing(events);
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
