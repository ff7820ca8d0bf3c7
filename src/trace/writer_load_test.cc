// What the writer makes of loads: the same bytes whichever way the jobs interleave, and an honest
// refusal of everything that has no place.
#include <semaphore>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/trace.h"

#include "support/load_fixture.h"
#include "support/trace_text.h"

namespace assay::trace {
namespace {

using assay::testing::LoadEvent;
using assay::testing::WithoutEnd;
using ::testing::HasSubstr;

// A writer into a string, closed and read back by Lines().
class Recording {
 public:
  explicit Recording(int version = kCurrentVersion)
      : writer_(TraceWriter::CreateInMemory(&text_, {.version = version}).value()) {}

  TraceWriter* operator->() { return writer_.get(); }
  TraceWriter* get() { return writer_.get(); }
  LoadObserver* observer() { return writer_->load_observer(); }

  void Make(uint64_t key) { writer_->BufferMade(key, {.size_bytes = key}); }
  void Kernel(uint64_t key, std::string_view name) {
    writer_->KernelMade(key, {.name = name, .digest = "0"});
  }
  void Dispatch(uint64_t kernel, const std::vector<uint64_t>& keys) {
    auto commands = writer_->BeginCommandBuffer();
    Encode(commands.get(), kernel, keys);
    writer_->Commit(*commands);
  }
  static void Encode(TraceWriter::CommandBuffer* commands, uint64_t kernel,
                     const std::vector<uint64_t>& keys) {
    std::vector<DispatchRecord::Binding> bindings;
    for (const uint64_t key : keys) bindings.push_back({key, {0, 8}, Access::kRead});
    commands->Dispatch({.kernel_key = kernel, .bindings = bindings});
  }

  // The lines behind the first one; fails the test when the trace is not whole.
  std::string Lines() {
    const Status closed = writer_->Close();
    EXPECT_TRUE(closed) << closed.error().message();
    const auto events = assay::testing::ReadAll(text_);
    EXPECT_TRUE(events) << events.error().message() << "\n" << text_;
    const std::string all = WithoutEnd(text_);
    return all.substr(all.find('\n') + 1);
  }

 private:
  std::string text_;
  std::unique_ptr<TraceWriter> writer_;
};

// The fixture's load with everything a job may do, then uses of what it made.
std::string RecordFixture(const std::function<void(Recording*)>& run_load, int version = 2) {
  Recording trace(version);
  trace.Make(1);
  trace.Kernel(1, "copy");
  run_load(&trace);
  trace.Make(2);
  trace.Dispatch(1, {assay::testing::AddressOf({3, 1}), 2});
  return trace.Lines();
}

// What each event of the fixture does in the trace, beyond making the buffer.
void DoEvent(Recording* trace, const LoadEvent& event) {
  const uint64_t key = assay::testing::AddressOf(event);
  (*trace)->BufferMade(key, {.size_bytes = 16, .kind = BufferKind::kWeight});
  (*trace)->HostWrite(key, {0, 16});
  if (event.job == 3 && event.k == 0) trace->Dispatch(1, {1, key});
  if (event.job == 4) (*trace)->BufferFreed(key);
}

std::string RecordInOrder(std::span<const LoadEvent> order, int version = 2) {
  return RecordFixture(
      [&](Recording* trace) {
        assay::testing::RunLoadInOrder(trace->observer(), order,
                                       [&](const LoadEvent& event) { DoEvent(trace, event); });
      },
      version);
}

TEST(WriterLoadTest, T2_TheBytesDoNotDependOnTheInterleaving) {
  const std::string expected =
      "buffer #0 size=1 kind=other\n"
      "buffer #1 size=16 kind=weight\n"
      "write #1[0,16)\n"
      "buffer #2 size=16 kind=weight\n"
      "write #2[0,16)\n"
      "buffer #3 size=16 kind=weight\n"
      "write #3[0,16)\n"
      "buffer #4 size=16 kind=weight\n"
      "write #4[0,16)\n"
      "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
      "begin\n"
      "dispatch k0 grid=1,1,1 r#0[0,8) r#4[0,8)\n"
      "commit\n"
      "buffer #5 size=16 kind=weight\n"
      "write #5[0,16)\n"
      "buffer #6 size=16 kind=weight\n"
      "write #6[0,16)\n"
      "buffer #7 size=16 kind=weight\n"
      "write #7[0,16)\n"
      "free #7\n"
      "buffer #8 size=16 kind=weight\n"
      "write #8[0,16)\n"
      "free #8\n"
      "buffer #9 size=2 kind=other\n"
      "begin\n"
      "dispatch k0 grid=1,1,1 r#5[0,8) r#9[0,8)\n"
      "commit\n";
  EXPECT_EQ(RecordInOrder(assay::testing::ForwardOrder()), expected);
  EXPECT_EQ(RecordInOrder(assay::testing::ReversedOrder()), expected);
  EXPECT_EQ(RecordInOrder(assay::testing::kMixedOrder), expected);
  for (const int workers : {1, 2, 4, 8}) {
    EXPECT_EQ(
        RecordFixture([&](Recording* trace) {
          EXPECT_TRUE(assay::testing::RunLoadOnWorkers(
              trace->observer(), workers, [&](const LoadEvent& event) { DoEvent(trace, event); }));
        }),
        expected)
        << workers;
  }
}

TEST(WriterLoadTest, T8_Version1HasTheSameLinesButNumbersInOrderOfMaking) {
  const auto numbers_erased = [](std::string lines) {
    std::string erased;
    for (size_t i = 0; i < lines.size(); ++i) {
      erased += lines[i];
      while (lines[i] == '#' && lines[i + 1] >= '0' && lines[i + 1] <= '9') {
        lines.erase(i + 1, 1);
      }
    }
    return erased;
  };
  const std::string forward = RecordInOrder(assay::testing::ForwardOrder(), 1);
  const std::string mixed = RecordInOrder(assay::testing::kMixedOrder, 1);
  EXPECT_EQ(forward, RecordInOrder(assay::testing::ForwardOrder(), 2));
  EXPECT_NE(mixed, forward);
  EXPECT_EQ(numbers_erased(mixed), numbers_erased(forward));
  EXPECT_THAT(mixed, HasSubstr("\nbuffer #3 size=16 kind=weight\nwrite #3[0,16)\nbuffer #7"));
}

TEST(WriterLoadTest, T8_Version1TakesWhatHasNoPlaceAsItComes) {
  Recording trace(kCreationOrderVersion);
  trace.Kernel(1, "copy");
  trace.Make(1);
  std::jthread([&] {
    trace.Make(2);
    trace->HostWrite(1, {0, 1});
    trace.Dispatch(1, {2});
  }).join();
  const uint64_t load = trace.observer()->OnLoadBegin(1);
  trace.Make(3);
  trace.observer()->OnLoadEnd(load);
  trace->BufferFreed(2);
  EXPECT_EQ(trace.Lines(),
            "buffer #0 size=1 kind=other\n"
            "buffer #1 size=2 kind=other\n"
            "write #0[0,1)\n"
            "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
            "begin\ndispatch k0 grid=1,1,1 r#1[0,8)\ncommit\n"
            "buffer #2 size=3 kind=other\n"
            "free #1\n");
}

TEST(WriterLoadTest, T5_FailedJobsLeaveNoLineAndUseUpNoNumber) {
  Recording trace;
  const Status status = InOrder(4, 1, trace.observer(), [&](size_t job) -> Status {
    trace.Make(10 + job);
    if (job == 2) return Fail(ErrorCode::kIo, "", "broken");
    return {};
  });
  ASSERT_FALSE(status);
  // The end of a buffer that left no line leaves none either.
  trace->BufferFreed(12);
  trace.Make(20);
  EXPECT_EQ(trace.Lines(),
            "buffer #0 size=10 kind=other\n"
            "buffer #1 size=11 kind=other\n"
            "buffer #2 size=20 kind=other\n");
}

TEST(WriterLoadTest, T5_ALoadThatFailsInTheMiddleShiftsNoLaterName) {
  // Job 1 fails; whether jobs 2 and 3 had run by then must not matter.
  const auto record = [](const std::vector<size_t>& jobs) {
    Recording trace;
    const uint64_t load = trace.observer()->OnLoadBegin(4);
    for (const size_t job : jobs) {
      trace.observer()->OnJobBegin(load, job);
      trace.Make(10 + job);
      trace->HostWrite(10 + job, {0, 1});
      trace.observer()->OnJobEnd(load, job, job != 1);
    }
    trace.observer()->OnLoadEnd(load);
    trace.Make(20);
    return trace.Lines();
  };
  const std::string expected =
      "buffer #0 size=10 kind=other\nwrite #0[0,1)\nbuffer #1 size=20 kind=other\n";
  EXPECT_EQ(record({0, 1}), expected);
  EXPECT_EQ(record({3, 2, 1, 0}), expected);
}

TEST(WriterLoadTest, T7_UsesOfABufferOfAFailedJobAreUnnamedAndCounted) {
  Recording trace;
  trace.Kernel(1, "copy");
  ASSERT_FALSE(InOrder(1, 1, trace.observer(), [&](size_t) -> Status {
    trace.Make(10);
    return Fail(ErrorCode::kIo, "", "broken");
  }));
  trace->HostRead(10, {0, 8});
  trace.Dispatch(1, {10, 10});
  EXPECT_EQ(trace.Lines(),
            "read #?[0,8)\n"
            "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
            "begin\n"
            "dispatch k0 grid=1,1,1 r#?[0,8) r#?[0,8)\n"
            "commit\n"
            "refused stale-job: 3\n");
}

TEST(WriterLoadTest, T7_ARefusedBufferCountsOnceHoweverOftenItIsUsed) {
  Recording trace;
  trace.Kernel(1, "copy");
  std::jthread([&] { trace.Make(10); }).join();
  trace.Dispatch(1, {10});
  trace.Dispatch(1, {10});
  trace->HostWrite(10, {0, 8});
  trace->BufferFreed(10);
  EXPECT_EQ(trace.Lines(),
            "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
            "begin\ndispatch k0 grid=1,1,1 r#?[0,8)\ncommit\n"
            "begin\ndispatch k0 grid=1,1,1 r#?[0,8)\ncommit\n"
            "write #?[0,8)\n"
            "refused off-thread: 1\n");
}

TEST(WriterLoadTest, T7_CallsOfAnotherThreadInNoJobLeaveNoLineAndCount) {
  Recording trace;
  trace.Make(1);
  trace.Kernel(1, "copy");
  std::jthread([&] {
    trace->HostWrite(1, {0, 1});
    trace->HostRead(1, {0, 1});
    trace.Dispatch(1, {1});
    trace->Wait();
    trace->BufferFreed(1);
  }).join();
  trace.Make(2);
  EXPECT_EQ(trace.Lines(),
            "buffer #0 size=1 kind=other\nbuffer #1 size=2 kind=other\nrefused off-thread: 5\n");
}

TEST(WriterLoadTest, T7_CallsInALoadButInNoJob) {
  Recording trace;
  trace.Make(1);
  const uint64_t load = trace.observer()->OnLoadBegin(1);
  // The session's own thread has its place in time; only a buffer it makes has none.
  trace->HostWrite(1, {0, 1});
  trace.Make(2);
  std::jthread([&] { trace->HostWrite(1, {0, 2}); }).join();
  trace.observer()->OnLoadEnd(load);
  EXPECT_EQ(trace.Lines(), "buffer #0 size=1 kind=other\nwrite #0[0,1)\nrefused outside-job: 2\n");
}

TEST(WriterLoadTest, T7_CallsInANestedLoadAndInAStaleJob) {
  Recording trace;
  trace.Make(1);
  const uint64_t outer = trace.observer()->OnLoadBegin(1);
  trace.observer()->OnJobBegin(outer, 0);
  trace.Make(2);
  EXPECT_TRUE(InOrder(1, 1, trace.observer(), [&](size_t) -> Status {
    trace.Make(3);
    trace->HostWrite(1, {0, 1});
    return {};
  }));
  trace->HostWrite(2, {0, 1});
  trace.observer()->OnLoadEnd(outer);
  trace->HostWrite(2, {0, 2});
  trace.observer()->OnJobEnd(outer, 0, true);
  EXPECT_EQ(trace.Lines(),
            "buffer #0 size=1 kind=other\n"
            "buffer #1 size=2 kind=other\n"
            "write #1[0,1)\n"
            "refused nested-load: 2\n"
            "refused stale-job: 1\n");
}

TEST(WriterLoadTest, T7_AUseBeforeTheBuffersLineIsUnnamedAndCounted) {
  Recording trace;
  trace.Kernel(1, "copy");
  const uint64_t load = trace.observer()->OnLoadBegin(2);
  std::jthread([&] {
    trace.observer()->OnJobBegin(load, 1);
    trace.Make(10);
    trace.Make(11);
    trace.Make(12);
    trace.observer()->OnJobEnd(load, 1, true);
  }).join();
  // The session's thread, in no job: its lines come before those of the load.
  trace->HostRead(10, {0, 1});
  trace.Dispatch(1, {10});
  trace->BufferFreed(12);
  // A job whose lines come before those of the job that made the buffer.
  trace.observer()->OnJobBegin(load, 0);
  trace->HostRead(10, {0, 2});
  trace->BufferFreed(11);
  trace.observer()->OnJobEnd(load, 0, true);
  trace.observer()->OnLoadEnd(load);
  trace->HostRead(10, {0, 3});
  EXPECT_EQ(trace.Lines(),
            "read #?[0,1)\n"
            "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
            "begin\ndispatch k0 grid=1,1,1 r#?[0,8)\ncommit\n"
            "read #?[0,2)\n"
            "buffer #0 size=10 kind=other\n"
            "buffer #1 size=11 kind=other\n"
            "buffer #2 size=12 kind=other\n"
            "read #0[0,3)\n"
            "refused outside-job: 5\n");
}

TEST(WriterLoadTest, T4_AJobUsesWhatALowerJobMade) {
  // One tensor filled in halves by two jobs.
  Recording trace;
  std::binary_semaphore made(0);
  ASSERT_TRUE(InOrder(2, 2, trace.observer(), [&](size_t job) -> Status {
    if (job == 0) {
      trace.Make(16);
      trace->HostWrite(16, {0, 8});
      made.release();
    } else {
      made.acquire();
      trace->HostWrite(16, {8, 16});
    }
    return {};
  }));
  EXPECT_EQ(trace.Lines(), "buffer #0 size=16 kind=other\nwrite #0[0,8)\nwrite #0[8,16)\n");
}

TEST(WriterLoadTest, ACommandBufferOpenAcrossALoadIsPutWhereItIsCommitted) {
  Recording trace;
  trace.Kernel(1, "copy");
  const uint64_t load = trace.observer()->OnLoadBegin(1);
  trace.observer()->OnJobBegin(load, 0);
  trace.Make(10);
  auto commands = trace->BeginCommandBuffer();
  Recording::Encode(commands.get(), 1, {10});
  trace.observer()->OnJobEnd(load, 0, true);
  trace.observer()->OnLoadEnd(load);
  Recording::Encode(commands.get(), 1, {10});
  trace->Wait();
  trace->Commit(*commands);
  EXPECT_EQ(trace.Lines(),
            "buffer #0 size=10 kind=other\n"
            "wait\n"
            "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
            "begin\n"
            "dispatch k0 grid=1,1,1 r#0[0,8)\n"
            "dispatch k0 grid=1,1,1 r#0[0,8)\n"
            "commit\n");
}

TEST(WriterLoadTest, T1_KernelsAreNumberedByFirstUseAndKnownByContent) {
  Recording trace;
  trace.Kernel(1, "unused");
  trace.Kernel(2, "second");
  trace.Kernel(3, "first");
  trace.Kernel(4, "second");
  auto commands = trace->BeginCommandBuffer();
  for (const uint64_t key : {3, 2, 4, 3}) Recording::Encode(commands.get(), key, {});
  // Committed first, so its kernel is used first.
  trace.Dispatch(4, {});
  trace->Commit(*commands);
  // A key that is declared anew stands for the new pipeline.
  trace.Kernel(3, "third");
  trace.Dispatch(3, {});
  EXPECT_EQ(trace.Lines(),
            "kernel k0 name=second digest=0 workgroup=1,1,1\n"
            "begin\ndispatch k0 grid=1,1,1\ncommit\n"
            "kernel k1 name=first digest=0 workgroup=1,1,1\n"
            "begin\n"
            "dispatch k1 grid=1,1,1\n"
            "dispatch k0 grid=1,1,1\n"
            "dispatch k0 grid=1,1,1\n"
            "dispatch k1 grid=1,1,1\n"
            "commit\n"
            "kernel k2 name=third digest=0 workgroup=1,1,1\n"
            "begin\ndispatch k2 grid=1,1,1\ncommit\n");
}

TEST(WriterLoadTest, T3_AReusedKeyNamesTheNewBufferInEveryCommandBuffer) {
  Recording trace;
  trace.Kernel(1, "copy");
  trace.Make(8);
  trace.Dispatch(1, {8});
  trace.Make(8);
  trace.Dispatch(1, {8});
  trace->BufferFreed(8);
  trace.Make(8);
  trace.Dispatch(1, {8});
  EXPECT_EQ(trace.Lines(),
            "buffer #0 size=8 kind=other\n"
            "kernel k0 name=copy digest=0 workgroup=1,1,1\n"
            "begin\ndispatch k0 grid=1,1,1 r#0[0,8)\ncommit\n"
            "buffer #1 size=8 kind=other\n"
            "begin\ndispatch k0 grid=1,1,1 r#1[0,8)\ncommit\n"
            "free #1\n"
            "buffer #2 size=8 kind=other\n"
            "begin\ndispatch k0 grid=1,1,1 r#2[0,8)\ncommit\n");
}

TEST(WriterLoadTest, ACommandBufferThatIsNotCommittedLeavesNoLine) {
  Recording trace;
  trace.Kernel(1, "copy");
  auto commands = trace->BeginCommandBuffer();
  Recording::Encode(commands.get(), 1, {});
  commands.reset();
  trace->Commit(*trace->BeginCommandBuffer());
  EXPECT_EQ(trace.Lines(), "begin\ncommit\n");
}

TEST(WriterLoadTest, ManyBuffersAndCommandBuffersAtOnce) {
  // More keys than a cache begins with, from several threads, each with a command buffer of its
  // own.
  constexpr size_t kBuffers = 500;
  Recording trace;
  trace.Kernel(1, "copy");
  for (uint64_t key = 0; key < kBuffers; ++key) trace.Make(key * 64);
  std::array<std::unique_ptr<TraceWriter::CommandBuffer>, 4> commands;
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < commands.size(); ++t) {
      threads.emplace_back([&, t] {
        commands[t] = trace->BeginCommandBuffer();
        for (size_t round = 0; round < 2; ++round) {
          for (uint64_t key = t; key < kBuffers; key += 4) {
            Recording::Encode(commands[t].get(), 1, {key * 64});
          }
        }
      });
    }
  }
  std::string expected = "kernel k0 name=copy digest=0 workgroup=1,1,1\n";
  for (size_t t = 0; t < commands.size(); ++t) {
    expected += "begin\n";
    for (size_t round = 0; round < 2; ++round) {
      for (size_t key = t; key < kBuffers; key += 4) {
        expected += "dispatch k0 grid=1,1,1 r#" + std::to_string(key) + "[0,8)\n";
      }
    }
    expected += "commit\n";
    trace->Commit(*commands[t]);
  }
  const std::string lines = trace.Lines();
  EXPECT_EQ(lines.substr(lines.find("kernel")), expected);
}

}  // namespace
}  // namespace assay::trace
