// Requirement T9: the numbers do not depend on how the jobs of a load interleave. A namer that
// counts as buffers come fails every InterleavingTest; where one thread runs the jobs in order
// nothing interleaves and the two agree.
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "assay/trace.h"

#include "support/load_fixture.h"

namespace assay::trace {
namespace {

using assay::testing::LoadEvent;

constexpr uint64_t kStart = 3;

// Makes buffers for the fixture and remembers them.
class FixtureRun {
 public:
  // The load begins at the number kStart.
  FixtureRun() {
    for (uint64_t i = 0; i < kStart; ++i) namer_.Made(0x9000 + i);
  }

  LoadObserver* observer() { return &namer_; }
  void Make(const LoadEvent& event) {
    const BufferNamer::SlotRef slot = namer_.Made(assay::testing::AddressOf(event));
    const std::lock_guard lock(mutex_);
    slots_[event] = slot;
  }
  void Check() {
    ASSERT_EQ(slots_.size(), assay::testing::kMixedOrder.size());
    for (const auto& [event, slot] : slots_) {
      EXPECT_EQ(BufferNamer::NumberOf(slot),
                BufferId(kStart + assay::testing::ExpectedOffset(event)))
          << "job " << event.job << ", buffer " << event.k;
      EXPECT_EQ(namer_.Find(assay::testing::AddressOf(event)), slot);
    }
    EXPECT_EQ(BufferNamer::NumberOf(namer_.Made(0x9999)),
              BufferId(kStart + assay::testing::kOffsetAfterLoad));
    EXPECT_EQ(namer_.refusals(), (std::array<uint64_t, kRefusalCount>{}));
  }

 private:
  BufferNamer namer_;
  std::mutex mutex_;
  std::map<LoadEvent, BufferNamer::SlotRef> slots_;
};

void CheckOrder(std::span<const LoadEvent> order) {
  FixtureRun run;
  assay::testing::RunLoadInOrder(run.observer(), order,
                                 [&](const LoadEvent& event) { run.Make(event); });
  run.Check();
}

void CheckWorkers(int workers) {
  FixtureRun run;
  ASSERT_TRUE(assay::testing::RunLoadOnWorkers(run.observer(), workers,
                                               [&](const LoadEvent& event) { run.Make(event); }));
  run.Check();
}

TEST(OneThreadOrderTest, T9_Forward) { CheckOrder(assay::testing::ForwardOrder()); }
TEST(OneThreadOrderTest, T9_OneWorker) { CheckWorkers(1); }

TEST(InterleavingTest, T9_Reversed) { CheckOrder(assay::testing::ReversedOrder()); }
TEST(InterleavingTest, T9_Mixed) { CheckOrder(assay::testing::kMixedOrder); }
TEST(InterleavingTest, T9_TwoWorkers) { CheckWorkers(2); }
TEST(InterleavingTest, T9_FourWorkers) { CheckWorkers(4); }
TEST(InterleavingTest, T9_EightWorkers) { CheckWorkers(8); }

}  // namespace
}  // namespace assay::trace
