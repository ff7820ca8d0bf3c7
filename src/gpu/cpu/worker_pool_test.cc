// The scheduler under contention; also run by the thread sanitizer.
#include "gpu/cpu/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/expect_error.h"

namespace assay::gpu {
namespace {

constexpr uint32_t kScratchBytes = 4096;
constexpr uint32_t kMaxChunks = 64;

std::unique_ptr<WorkerPool> MakePool(int threads, uint32_t spin_us = 20) {
  return WorkerPool::Create(threads, spin_us, kScratchBytes).value();
}

// A kernel's whole world in these tests: a C++ function object behind the constants.
struct Job {
  virtual ~Job() = default;
  virtual void Run(const CpuKernelArgs& args, uint32_t group) = 0;
};

void RunJob(const CpuKernelArgs& args, Extent3 group) {
  uintptr_t address = 0;
  std::memcpy(&address, args.constants, sizeof(address));
  reinterpret_cast<Job*>(address)->Run(args, group.x);
}

void Add(CommandList* list, Job* job, uint32_t workgroups) {
  CpuDispatch dispatch;
  dispatch.run = RunJob;
  dispatch.kernel_name = "job";
  dispatch.grid = {workgroups, 1, 1};
  dispatch.shared_bytes = kScratchBytes;
  ASSERT_TRUE(list->AddDispatch(dispatch, {}, std::as_bytes(std::span(&job, 1)), kMaxChunks));
}

// Plain words: only the order that barriers give makes this free of races. Stage s sets every word
// to s after it has seen s - 1 in all words that other threads may have written.
struct Stage : Job {
  Stage(std::vector<uint32_t>* w, uint32_t s) : words(w), stage(s) {}
  void Run(const CpuKernelArgs&, uint32_t group) override {
    // Odd stages read the upper half and write the lower one; even stages the other way round.
    const size_t half = words->size() / 2;
    const size_t from = stage % 2 == 1 ? half : 0;
    const size_t to = half - from;
    for (size_t i = 0; i < half; ++i) {
      if ((*words)[from + i] != stage - 1) ++wrong;
    }
    (*words)[to + group] = stage;
  }
  std::vector<uint32_t>* words;
  uint32_t stage;
  std::atomic<int> wrong{0};
};

TEST(WorkerPool, ABarrierJoinsAtAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const uint32_t width : {1u, 2u, 64u}) {
      const auto pool = MakePool(threads);
      const auto lane = pool->CreateLane().value();
      std::vector<uint32_t> words(2 * width, 0);
      std::vector<std::unique_ptr<Stage>> stages;
      CommandList list;
      for (uint32_t s = 1; s <= 200; ++s) {
        stages.push_back(std::make_unique<Stage>(&words, s));
        Add(&list, stages.back().get(), width);
        list.AddBarrier();
      }
      list.End();
      lane->Wait(lane->Submit(&list));
      for (const auto& stage : stages) EXPECT_EQ(stage->wrong, 0) << "stage " << stage->stage;
      EXPECT_EQ(words.front(), 199u);
      EXPECT_EQ(words.back(), 200u);
    }
  }
}

// Returns when `wanted` workgroups run at once.
struct Rendezvous : Job {
  explicit Rendezvous(int w) : wanted(w) {}
  void Run(const CpuKernelArgs&, uint32_t) override {
    arrived.fetch_add(1);
    while (arrived.load() < wanted) std::this_thread::yield();
  }
  const int wanted;
  std::atomic<int> arrived{0};
};

TEST(WorkerPool, WorkgroupsOfOneDispatchOverlap) {
  const auto pool = MakePool(3);
  const auto lane = pool->CreateLane().value();
  Rendezvous meet(3);
  CommandList list;
  Add(&list, &meet, 3);
  list.End();
  lane->Wait(lane->Submit(&list));
  EXPECT_EQ(meet.arrived, 3);
}

TEST(WorkerPool, DispatchesOfOneGroupOverlap) {
  const auto pool = MakePool(2);
  const auto lane = pool->CreateLane().value();
  Rendezvous meet(2);
  CommandList list;
  Add(&list, &meet, 1);
  Add(&list, &meet, 1);
  list.End();
  lane->Wait(lane->Submit(&list));
  EXPECT_EQ(meet.arrived, 2);
}

TEST(WorkerPool, WorkersRunWithoutTheHost) {
  const auto pool = MakePool(2);
  const auto lane = pool->CreateLane().value();
  Rendezvous alone(1);
  CommandList list;
  Add(&list, &alone, 1);
  list.End();
  const uint64_t number = lane->Submit(&list);
  while (alone.arrived.load() == 0) std::this_thread::yield();
  lane->Wait(number);
}

// Writes the number of its list down.
struct Note : Job {
  Note(std::vector<int>* l, int n) : log(l), number(n) {}
  void Run(const CpuKernelArgs&, uint32_t group) override {
    if (group == 0) log->push_back(number);
  }
  std::vector<int>* log;
  int number;
};

TEST(WorkerPool, ListsOfOneLaneRunInOrderOfSubmission) {
  const auto pool = MakePool(4);
  const auto lane = pool->CreateLane().value();
  std::vector<int> log;  // No lock: the lists must not overlap.
  std::vector<std::unique_ptr<Note>> notes;
  std::vector<std::unique_ptr<CommandList>> lists;
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    notes.push_back(std::make_unique<Note>(&log, i));
    lists.push_back(std::make_unique<CommandList>());
    Add(lists.back().get(), notes.back().get(), i % 2 == 0 ? 1 : 5);
    lists.back()->End();
    last = lane->Submit(lists.back().get());
  }
  EXPECT_EQ(last, 100u);
  lane->Wait(last);
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(log, expected);
}

struct CountJob : Job {
  void Run(const CpuKernelArgs&, uint32_t) override { count.fetch_add(1); }
  std::atomic<uint64_t> count{0};
};

TEST(WorkerPool, ManyLanesShareTheWorkers) {
  // More lanes than there are slots, each from a thread of its own.
  constexpr int kLanes = 100;
  for (const int threads : {1, 4}) {
    const auto pool = MakePool(threads, /*spin_us=*/0);
    CountJob job;
    std::vector<std::thread> hosts;
    for (int i = 0; i < 8; ++i) {
      hosts.emplace_back([&] {
        std::vector<std::unique_ptr<WorkerPool::Lane>> lanes;
        std::vector<std::unique_ptr<CommandList>> lists;
        for (int k = 0; k < kLanes / 8; ++k) {
          lanes.push_back(pool->CreateLane().value());
          lists.push_back(std::make_unique<CommandList>());
          for (int g = 0; g < 3; ++g) {
            Add(lists.back().get(), &job, 7);
            lists.back()->AddBarrier();
          }
          lists.back()->End();
          lanes.back()->Submit(lists.back().get());
        }
        // The last first, so that its turn comes behind lanes that nobody waits for.
        while (!lanes.empty()) {
          lanes.back()->Wait(1);
          lanes.pop_back();
        }
      });
    }
    for (std::thread& host : hosts) host.join();
    EXPECT_EQ(job.count, uint64_t{kLanes / 8} * 8 * 3 * 7);
  }
}

TEST(WorkerPool, AHostOfTheLastLaneDrivesTheOthersWithoutWorkers) {
  const auto pool = MakePool(1);
  CountJob job;
  std::vector<std::unique_ptr<WorkerPool::Lane>> lanes;
  CommandList list;
  Add(&list, &job, 3);
  list.End();
  for (int i = 0; i < 70; ++i) {
    lanes.push_back(pool->CreateLane().value());
    lanes.back()->Submit(&list);
  }
  EXPECT_EQ(job.count, 0u) << "without workers nothing runs before somebody waits";
  lanes.back()->Wait(1);
  lanes.clear();
  EXPECT_EQ(job.count, 210u);
}

TEST(WorkerPool, SleepersWakeForNewWork) {
  // Without spinning every wait is a sleep, so a lost wake-up hangs here.
  const auto pool = MakePool(3, /*spin_us=*/0);
  const auto lane = pool->CreateLane().value();
  CountJob job;
  for (int i = 0; i < 2000; ++i) {
    CommandList list;
    Add(&list, &job, 2);
    list.AddBarrier();
    Add(&list, &job, 3);
    list.End();
    lane->Wait(lane->Submit(&list));
  }
  EXPECT_EQ(job.count, 10'000u);
}

struct ScratchJob : Job {
  void Run(const CpuKernelArgs& args, uint32_t group) override {
    const std::lock_guard lock(mutex);
    places.insert(args.shared.data());
    aligned = aligned && reinterpret_cast<uintptr_t>(args.shared.data()) % 64 == 0;
    sized = sized && args.shared.size() == kScratchBytes;
    (void)group;
  }
  std::mutex mutex;
  std::set<const std::byte*> places;
  bool aligned = true;
  bool sized = true;
};

TEST(WorkerPool, EveryThreadHasItsOwnSharedMemory) {
  const auto pool = MakePool(3);
  const auto lane = pool->CreateLane().value();
  Rendezvous meet(3);
  ScratchJob scratch;
  struct Both : Job {
    void Run(const CpuKernelArgs& args, uint32_t group) override {
      scratch->Run(args, group);
      meet->Run(args, group);
    }
    ScratchJob* scratch = nullptr;
    Rendezvous* meet = nullptr;
  } both;
  both.scratch = &scratch;
  both.meet = &meet;
  CommandList list;
  Add(&list, &both, 3);
  list.End();
  lane->Wait(lane->Submit(&list));
  EXPECT_EQ(scratch.places.size(), 3u);
  EXPECT_TRUE(scratch.aligned);
  EXPECT_TRUE(scratch.sized);
}

TEST(WorkerPool, ALaneThatEndsWaitsForItsWork) {
  const auto pool = MakePool(2);
  CountJob job;
  CommandList list;
  for (int i = 0; i < 50; ++i) {
    Add(&list, &job, 9);
    list.AddBarrier();
  }
  list.End();
  {
    const auto lane = pool->CreateLane().value();
    lane->Submit(&list);
  }
  EXPECT_EQ(job.count, 450u);
}

}  // namespace
}  // namespace assay::gpu
