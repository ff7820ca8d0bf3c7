#include <atomic>
#include <semaphore>
#include <thread>

#include <gtest/gtest.h>

#include "assay/trace.h"

namespace assay::trace {
namespace {

using Refusals = std::array<uint64_t, kRefusalCount>;

std::optional<BufferId> NumberOf(const BufferNamer::SlotRef& slot) {
  return BufferNamer::NumberOf(slot);
}

TEST(BufferNamerTest, T3_TheSessionsOwnThreadTakesTheNextNumber) {
  BufferNamer namer;
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(NumberOf(namer.Made(i * 64)), BufferId(i));
}

TEST(BufferNamerTest, T3_AnAddressThatComesBackAfterItsEndIsANewBuffer) {
  BufferNamer namer;
  const auto first = namer.Made(8);
  namer.Freed(8);
  EXPECT_EQ(namer.Find(8), nullptr);
  EXPECT_EQ(NumberOf(namer.Find(8)), std::nullopt);
  const auto second = namer.Made(8);
  EXPECT_EQ(NumberOf(first), BufferId(0));
  EXPECT_EQ(NumberOf(second), BufferId(1));
  EXPECT_EQ(namer.Find(8), second);
}

TEST(BufferNamerTest, T4_ANumberIsSettledOnlyWhenItsLoadEnds) {
  BufferNamer namer;
  const uint64_t load = namer.OnLoadBegin(1);
  namer.OnJobBegin(load, 0);
  const auto slot = namer.Made(1);
  EXPECT_EQ(NumberOf(slot), std::nullopt);
  namer.OnJobEnd(load, 0, true);
  EXPECT_EQ(NumberOf(slot), std::nullopt);
  namer.OnLoadEnd(load);
  EXPECT_EQ(NumberOf(slot), BufferId(0));
}

TEST(BufferNamerTest, T4_ABufferFreedInsideItsJobKeepsItsPlace) {
  BufferNamer namer;
  std::vector<BufferNamer::SlotRef> slots;
  ASSERT_TRUE(InOrder(2, 1, &namer, [&](size_t) -> Status {
    slots.push_back(namer.Made(7));
    namer.Freed(7);
    return {};
  }));
  EXPECT_EQ(NumberOf(slots[0]), BufferId(0));
  EXPECT_EQ(NumberOf(slots[1]), BufferId(1));
}

TEST(BufferNamerTest, T4_LoadsFollowOneAnother) {
  BufferNamer namer;
  std::vector<BufferNamer::SlotRef> slots(6);
  const auto load = [&](size_t first) {
    return InOrder(2, 2, &namer, [&, first](size_t job) -> Status {
      slots[first + job] = namer.Made(first + job);
      return {};
    });
  };
  ASSERT_TRUE(load(0));
  slots[2] = namer.Made(2);
  ASSERT_TRUE(load(3));
  slots[5] = namer.Made(5);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(NumberOf(slots[i]), BufferId(i));
}

TEST(BufferNamerTest, T5_JobsThatFailUseUpNoNumber) {
  BufferNamer namer;
  namer.Made(100);
  const uint64_t load = namer.OnLoadBegin(4);
  std::vector<BufferNamer::SlotRef> slots(4);
  // Job 3 is over before job 1 fails, as on several threads it may be.
  for (const size_t job : {3, 1, 0, 2}) {
    namer.OnJobBegin(load, job);
    slots[job] = namer.Made(job);
    namer.OnJobEnd(load, job, job != 1 && job != 2);
  }
  namer.OnLoadEnd(load);
  EXPECT_EQ(NumberOf(slots[0]), BufferId(1));
  for (const size_t job : {1, 2, 3}) EXPECT_EQ(NumberOf(slots[job]), std::nullopt) << job;
  EXPECT_EQ(NumberOf(namer.Made(101)), BufferId(2));
  EXPECT_EQ(namer.refusals(), Refusals{});
}

TEST(BufferNamerTest, T7_OffThreadTakesNoNumber) {
  BufferNamer namer;
  std::jthread([&] { namer.Made(1); }).join();
  EXPECT_EQ(NumberOf(namer.Made(2)), BufferId(0));
  EXPECT_EQ(namer.refusals(), (Refusals{1, 0, 0, 0}));
}

TEST(BufferNamerTest, T7_InALoadButInNoJob) {
  BufferNamer namer;
  const uint64_t load = namer.OnLoadBegin(1);
  const auto own = namer.Made(1);
  BufferNamer::SlotRef other;
  std::jthread([&] { other = namer.Made(2); }).join();
  namer.OnLoadEnd(load);
  EXPECT_EQ(NumberOf(own), kUnnamedBuffer);
  EXPECT_EQ(NumberOf(other), kUnnamedBuffer);
  EXPECT_EQ(namer.refusals(), (Refusals{0, 2, 0, 0}));
  EXPECT_EQ(NumberOf(namer.Made(3)), BufferId(0));
}

TEST(BufferNamerTest, T7_InANestedLoad) {
  BufferNamer namer;
  std::array<BufferNamer::SlotRef, 4> slots;
  ASSERT_TRUE(InOrder(1, 1, &namer, [&](size_t) -> Status {
    slots[0] = namer.Made(0);
    const Status nested = InOrder(2, 1, &namer, [&](size_t job) -> Status {
      slots[1 + job] = namer.Made(1 + job);
      return {};
    });
    slots[3] = namer.Made(3);
    return nested;
  }));
  EXPECT_EQ(NumberOf(slots[0]), BufferId(0));
  EXPECT_EQ(NumberOf(slots[1]), kUnnamedBuffer);
  EXPECT_EQ(NumberOf(slots[2]), kUnnamedBuffer);
  EXPECT_EQ(NumberOf(slots[3]), BufferId(1));
  EXPECT_EQ(namer.refusals(), (Refusals{0, 0, 2, 0}));
}

TEST(BufferNamerTest, T7_ANestedLoadThatFailsDoesNotFailTheOuterJobs) {
  BufferNamer namer;
  BufferNamer::SlotRef slot;
  ASSERT_TRUE(InOrder(1, 1, &namer, [&](size_t) -> Status {
    slot = namer.Made(0);
    EXPECT_FALSE(
        InOrder(1, 1, &namer, [](size_t) -> Status { return Fail(ErrorCode::kIo, "", "broken"); }));
    return {};
  }));
  EXPECT_EQ(NumberOf(slot), BufferId(0));
}

TEST(BufferNamerTest, T7_AThreadOfTheOuterLoadIsToldFromOneOfTheNestedLoad) {
  BufferNamer namer;
  const uint64_t outer = namer.OnLoadBegin(2);
  namer.OnJobBegin(outer, 0);
  const uint64_t nested = namer.OnLoadBegin(2);
  BufferNamer::SlotRef of_outer, of_nested;
  // Both threads are new to the namer and begin a job of the same number.
  std::jthread([&] {
    namer.OnJobBegin(nested, 1);
    of_nested = namer.Made(1);
    namer.OnJobEnd(nested, 1, true);
  }).join();
  std::jthread([&] {
    namer.OnJobBegin(outer, 1);
    of_outer = namer.Made(2);
    namer.OnJobEnd(outer, 1, true);
  }).join();
  namer.OnLoadEnd(nested);
  namer.OnJobEnd(outer, 0, true);
  namer.OnLoadEnd(outer);
  EXPECT_EQ(NumberOf(of_outer), BufferId(0));
  EXPECT_EQ(NumberOf(of_nested), kUnnamedBuffer);
  EXPECT_EQ(namer.refusals(), (Refusals{0, 0, 1, 0}));
}

TEST(BufferNamerTest, T7_ByAJobWhoseLoadHasEnded) {
  BufferNamer namer;
  std::binary_semaphore load_ended(0);
  std::binary_semaphore job_begun(0);
  BufferNamer::SlotRef before, after;
  const uint64_t load = namer.OnLoadBegin(1);
  std::jthread straggler([&] {
    namer.OnJobBegin(load, 0);
    before = namer.Made(1);
    job_begun.release();
    load_ended.acquire();
    after = namer.Made(2);
    namer.OnJobEnd(load, 0, true);
  });
  job_begun.acquire();
  namer.OnLoadEnd(load);
  EXPECT_EQ(NumberOf(namer.Made(3)), BufferId(1));
  load_ended.release();
  straggler.join();
  EXPECT_EQ(NumberOf(before), BufferId(0));
  EXPECT_EQ(NumberOf(after), kUnnamedBuffer);
  EXPECT_EQ(namer.refusals(), (Refusals{0, 0, 0, 1}));
}

TEST(BufferNamerTest, T7_AStaleJobOfTheSessionsThreadEndsWithIt) {
  BufferNamer namer;
  const uint64_t load = namer.OnLoadBegin(1);
  namer.OnJobBegin(load, 0);
  namer.OnLoadEnd(load);
  EXPECT_EQ(NumberOf(namer.Made(1)), kUnnamedBuffer);
  namer.OnJobEnd(load, 0, true);
  EXPECT_EQ(NumberOf(namer.Made(2)), BufferId(0));
  EXPECT_EQ(namer.refusals(), (Refusals{0, 0, 0, 1}));
}

TEST(BufferNamerTest, T4_TwoNamersDoNotMeet) {
  BufferNamer a, b;
  const uint64_t load = a.OnLoadBegin(1);
  a.OnJobBegin(load, 0);
  // This thread is in a job for `a` alone.
  EXPECT_EQ(NumberOf(b.Made(1)), BufferId(0));
  EXPECT_EQ(NumberOf(a.Made(1)), std::nullopt);
  a.OnJobEnd(load, 0, true);
  a.OnLoadEnd(load);
  EXPECT_EQ(b.refusals(), Refusals{});
}

TEST(BufferNamerTest, T8_Version1NumbersInOrderOfMakingOnAnyThread) {
  BufferNamer namer(kCreationOrderVersion);
  std::array<BufferNamer::SlotRef, 5> slots;
  std::jthread([&] { slots[0] = namer.Made(0); }).join();
  const uint64_t load = namer.OnLoadBegin(2);
  for (const size_t job : {1, 0}) {
    namer.OnJobBegin(load, job);
    slots[2 - job] = namer.Made(2 - job);
    EXPECT_EQ(NumberOf(slots[2 - job]), BufferId(2 - job));
    namer.OnJobEnd(load, job, false);
  }
  slots[3] = namer.Made(3);
  namer.OnLoadEnd(load);
  slots[4] = namer.Made(4);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(NumberOf(slots[i]), BufferId(i));
  EXPECT_EQ(namer.refusals(), Refusals{});
}

TEST(BufferNamerTest, T4_ManyThreadsMakeAndFindAtOnce) {
  constexpr size_t kJobs = 64;
  constexpr size_t kEach = 25;
  BufferNamer namer;
  std::vector<std::vector<BufferNamer::SlotRef>> slots(kJobs);
  ASSERT_TRUE(InOrder(kJobs, 8, &namer, [&](size_t job) -> Status {
    for (size_t k = 0; k < kEach; ++k) {
      const uint64_t key = job << 16 | k;
      slots[job].push_back(namer.Made(key));
      EXPECT_EQ(namer.Find(key), slots[job].back());
      if (k % 3 == 0) namer.Freed(key);
    }
    return {};
  }));
  for (size_t job = 0; job < kJobs; ++job) {
    for (size_t k = 0; k < kEach; ++k) {
      EXPECT_EQ(NumberOf(slots[job][k]), BufferId(job * kEach + k));
    }
  }
}

}  // namespace
}  // namespace assay::trace
