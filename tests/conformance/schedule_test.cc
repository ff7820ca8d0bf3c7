// E8 on every backend: what a program leaves under the schedules, with its barriers and without.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "gpu/backend.h"
#include "gpu/schedule/scheduled_backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Bump;
using testing::Elementwise;
using testing::MakeBuffer;
using testing::MakeDevice;
using testing::TestDispatch;
using testing::View;

// Arranges as a schedule does and reports nothing, so that results can be looked at.
class SilentArranger final : public Arranger {
 public:
  explicit SilentArranger(const Schedule& schedule) : schedule_(schedule) {}
  Arrangement Choose(const Group& group) override { return Arrange(schedule_, group); }
  bool reports_conflicts() const override { return false; }

 private:
  Schedule schedule_;
};

std::vector<Schedule> SchedulesOf(const std::string& backend) {
  return FixedSchedules(testing::MakeVariant(backend).value()->info());
}

bool Executes(const std::string& backend) {
  const std::vector<std::string> names = testing::ExecutingBackends();
  return std::ranges::find(names, backend) != names.end();
}

// --- E7

constexpr size_t kCount = 4096;

// The smoke program on a device of its own.
class Smoke {
 public:
  explicit Smoke(std::unique_ptr<Device> device)
      : device_(std::move(device)),
        session_(device_->CreateSession({.barriers = BarrierMode::kManual}).value()),
        a_(Filled("a", 1.0F, 97, 0.5F)),
        b_(Filled("b", 2.0F, 53, 0.25F)),
        c_(Filled("c", 0.5F, 31, 0.125F)),
        tmp_(MakeBuffer(*device_, kCount * sizeof(float), "tmp")),
        out_(MakeBuffer(*device_, kCount * sizeof(float), "out")) {}

  // The status of Wait. Every run begins with the same memory.
  Status Run(bool with_barrier) {
    const std::vector<float> zeros(kCount);
    testing::WriteFloats(*device_, tmp_.All(), zeros);
    testing::WriteFloats(*device_, out_.All(), zeros);
    ASSAY_TRY(
        session_->Dispatch(Elementwise(*device_, "add", a_.All(), b_.All(), tmp_.All()).get()));
    if (with_barrier) ASSAY_TRY(session_->Barrier());
    ASSAY_TRY(
        session_->Dispatch(Elementwise(*device_, "mul", tmp_.All(), c_.All(), out_.All()).get()));
    ASSAY_TRY(session_->Commit());
    return session_->Wait();
  }
  // Of the elements within 1e-4 of the formula.
  size_t CountRight() {
    const std::vector<float> out = testing::ReadFloats(*device_, out_.All());
    size_t right = 0;
    for (size_t i = 0; i < kCount; ++i) {
      const double want =
          (1 + static_cast<double>(i % 97) * 0.5 + 2 + static_cast<double>(i % 53) * 0.25) *
          (0.5 + static_cast<double>(i % 31) * 0.125);
      if (std::abs(out[i] - want) <= 1e-4) ++right;
    }
    return right;
  }

 private:
  Buffer Filled(const char* label, float first, size_t period, float step) {
    std::vector<float> values(kCount);
    for (size_t i = 0; i < kCount; ++i) values[i] = first + static_cast<float>(i % period) * step;
    Buffer buffer = MakeBuffer(*device_, kCount * sizeof(float), label);
    testing::WriteFloats(*device_, buffer.All(), values);
    return buffer;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  Buffer a_, b_, c_, tmp_, out_;
};

class ScheduledSmokeTest : public ::testing::TestWithParam<std::string> {
 protected:
  Smoke Make(const Schedule& schedule) {
    return Smoke(MakeDevice(GetParam(), {.threads = 2, .schedule = schedule}));
  }
  Smoke MakeSilent(const Schedule& schedule) {
    return Smoke(
        MakeDevice(MakeScheduledBackend(testing::MakeVariant(GetParam(), {.threads = 2}).value(),
                                        std::make_shared<SilentArranger>(schedule))));
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, ScheduledSmokeTest,
                         ::testing::ValuesIn(testing::RunnableBackends()),
                         testing::BackendTestName);

TEST_P(ScheduledSmokeTest, E7_E8_WithItsBarrierItNeverFails) {
  for (const Schedule& schedule : SchedulesOf(GetParam())) {
    Smoke smoke = Make(schedule);
    for (int round = 0; round < 100; ++round) {
      ASSERT_THAT(smoke.Run(true), Succeeds()) << FormatSchedule(schedule);
      if (Executes(GetParam())) {
        ASSERT_EQ(smoke.CountRight(), kCount) << FormatSchedule(schedule) << ", round " << round;
      }
    }
  }
}

TEST_P(ScheduledSmokeTest, E7_E8_WithoutItsBarrierEveryScheduleReportsItEveryTime) {
  for (const Schedule& schedule : SchedulesOf(GetParam())) {
    Smoke smoke = Make(schedule);
    for (int round = 1; round <= 100; ++round) {
      const Status status = smoke.Run(false);
      ASSERT_THAT(status, FailsWith(ErrorCode::kInvalidArgument,
                                    "Dispatch 2 of command buffer " + std::to_string(round) +
                                        " (kernel \"mul\") reads bytes [0, 16384) of buffer "
                                        "\"tmp\", which dispatch 1 (kernel \"add\") writes; no "
                                        "barrier stands between them."))
          << FormatSchedule(schedule);
      EXPECT_EQ(status.error().subject(), "tmp");
    }
  }
}

TEST_P(ScheduledSmokeTest, E7_E8_WithoutItsBarrierTheResultIsWrongEveryTime) {
  if (!Executes(GetParam())) return;
  for (const char* word : {"reversed", "late-writes"}) {
    Smoke smoke = MakeSilent(ParseSchedule(word).value());
    for (int round = 0; round < 100; ++round) {
      ASSERT_THAT(smoke.Run(false), Succeeds());
      ASSERT_EQ(smoke.CountRight(), 0U) << word << ", round " << round;
    }
  }
  // Workgroup by workgroup, some products come before their sums and some behind them, the same
  // ones every time.
  if (!testing::MakeVariant(GetParam()).value()->info().interleaves) return;
  Smoke smoke = MakeSilent({ScheduleKind::kInterleaved, 1});
  ASSERT_THAT(smoke.Run(false), Succeeds());
  const size_t right = smoke.CountRight();
  EXPECT_GT(right, 0U);
  EXPECT_LT(right, kCount);
}

// --- Every schedule

class ScheduleTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, ScheduleTest, ::testing::ValuesIn(testing::RunnableBackends()),
                         testing::BackendTestName);

// Three groups and two command buffers.
void RunProgram(Device& device) {
  const Buffer x = MakeBuffer(device, 1024, "x");
  const Buffer y = MakeBuffer(device, 1024, "y");
  const Buffer z = MakeBuffer(device, 1024, "z");
  const auto session = device.CreateSession({.barriers = BarrierMode::kManual}).value();
  const auto dispatch = [&](const TestDispatch& one) {
    EXPECT_THAT(session->Dispatch(one.get()), Succeeds());
  };
  for (int i = 0; i < 2; ++i) {
    dispatch(Bump(device, x.All()));
    dispatch(Bump(device, y.All()));
    EXPECT_THAT(session->Barrier(), Succeeds());
    dispatch(Elementwise(device, "add", x.All(), y.All(), z.All()));
    EXPECT_THAT(session->Barrier(), Succeeds());
    dispatch(Bump(device, z.All()));
    dispatch(Bump(device, View(x, 0, 512)));
    dispatch(Bump(device, View(x, 512, 512)));
    EXPECT_THAT(session->Commit(), Succeeds());
  }
  EXPECT_THAT(session->Wait(), Succeeds());
  const std::vector<uint32_t> words = testing::ReadWords(device, z.All());
  EXPECT_EQ(session->counters().barriers, 4U);
}

TEST_P(ScheduleTest, E8_TheTraceIsTheSameBytesUnderEverySchedule) {
  const auto record = [&](const Schedule& schedule) {
    std::string text;
    const auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
    RunProgram(*MakeDevice(record::MakeRecordingBackend(
        testing::MakeVariant(GetParam(), {.threads = 2, .schedule = schedule}).value(),
        writer.get())));
    EXPECT_THAT(writer->Close(), Succeeds());
    return text;
  };
  const std::string recorded = record({});
  EXPECT_NE(recorded.find("barrier"), std::string::npos);
  for (const Schedule& schedule : SchedulesOf(GetParam())) {
    EXPECT_EQ(record(schedule), recorded) << FormatSchedule(schedule);
  }
}

TEST_P(ScheduleTest, E8_TheDeviceGetsTheOrderWithABarrierBehindEach) {
  const auto log_of = [&](const Schedule& schedule) {
    const auto spy = std::make_shared<testing::Spy>();
    const auto device = MakeDevice(
        MakeScheduledBackend(testing::MakeSpyBackend(testing::MakeVariant(GetParam()).value(), spy),
                             schedule)
            .value());
    const Buffer x = MakeBuffer(*device, 256, "x");
    const Buffer y = MakeBuffer(*device, 256, "y");
    const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
    EXPECT_NE(testing::Kernel(*device, "bump"), testing::Kernel(*device, "nothing"));
    spy->TakeLog();
    EXPECT_THAT(session->Dispatch(Bump(*device, x.All()).get()), Succeeds());
    EXPECT_THAT(
        session->Dispatch(testing::TestDispatch(testing::Kernel(*device, "nothing"), {}, 1).get()),
        Succeeds());
    EXPECT_THAT(session->Barrier(), Succeeds());
    EXPECT_THAT(session->Dispatch(Bump(*device, y.All()).get()), Succeeds());
    EXPECT_THAT(session->Commit(), Succeeds());
    EXPECT_THAT(session->Wait(), Succeeds());
    return spy->TakeLog();
  };
  using Log = std::vector<std::string>;
  EXPECT_EQ(log_of({}), (Log{"begin", "dispatch bump", "dispatch nothing", "barrier",
                             "dispatch bump", "end", "commit", "wait"}));
  EXPECT_EQ(log_of({ScheduleKind::kReversed, 0}),
            (Log{"begin", "dispatch nothing", "barrier", "dispatch bump", "barrier",
                 "dispatch bump", "end", "commit", "wait"}));
}

// What may touch bytes is no conflict for certain.
TEST_P(ScheduleTest, E8_OnlyCertainConflictsAreErrors) {
  const auto device =
      MakeDevice(GetParam(), {.threads = 1, .schedule = {ScheduleKind::kReversed, 0}});
  const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  const Buffer x = MakeBuffer(*device, 256, "x");
  const auto run = [&](bool first_exact, bool second_exact, const BufferView& first,
                       const BufferView& second) {
    TestDispatch one = Bump(*device, first);
    one.bindings()[0].exact = first_exact;
    TestDispatch two = Bump(*device, second);
    two.bindings()[0].exact = second_exact;
    EXPECT_THAT(session->Dispatch(one.get()), Succeeds());
    EXPECT_THAT(session->Dispatch(TestDispatch(testing::Kernel(*device, "nothing"), {}, 1).get()),
                Succeeds());
    EXPECT_THAT(session->Dispatch(two.get()), Succeeds());
    EXPECT_THAT(session->Commit(), Succeeds());
    return session->Wait();
  };
  EXPECT_THAT(run(false, true, x.All(), x.All()), Succeeds());
  EXPECT_THAT(run(true, false, x.All(), x.All()), Succeeds());
  EXPECT_THAT(run(true, true, View(x, 0, 128), View(x, 128, 128)), Succeeds());
  EXPECT_THAT(run(true, true, View(x, 0, 128), View(x, 124, 128)),
              FailsWith(ErrorCode::kInvalidArgument,
                        "Dispatch 3 of command buffer 4 (kernel \"bump\") reads bytes [124, 128) "
                        "of buffer \"x\", which dispatch 1"));
  // Said once, and the session goes on.
  EXPECT_THAT(session->Wait(), Succeeds());
  EXPECT_THAT(run(true, true, View(x, 0, 128), View(x, 128, 128)), Succeeds());
}

TEST_P(ScheduleTest, E8_AnInterleavingIsRefusedWhereItCannotBe) {
  const Schedule schedule{ScheduleKind::kInterleaved, 1};
  auto backend = testing::MakeVariant(GetParam(), {.schedule = schedule});
  if (!testing::MakeVariant(GetParam()).value()->info().interleaves) {
    EXPECT_THAT(backend, FailsWith(ErrorCode::kUnsupported, "cannot run workgroups interleaved"));
    return;
  }
  EXPECT_THAT(Device::Create(*std::move(backend), {.checked = true}),
              FailsWith(ErrorCode::kUnsupported, "cannot run workgroups interleaved"));
  EXPECT_TRUE(Device::Create(
      testing::MakeVariant(GetParam(), {.schedule = {ScheduleKind::kRandom, 1}}).value(),
      {.checked = true}));
}

// --- Results

class ExecutedScheduleTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, ExecutedScheduleTest,
                         ::testing::ValuesIn(testing::ExecutingBackends()),
                         testing::BackendTestName);

// An edge that no declaration shows is found by its result: "peek" reads what "hold" writes and
// says it only reads.
TEST_P(ExecutedScheduleTest, E8_AnUndeclaredEdgeChangesTheResult) {
  const auto run = [&](const Schedule& schedule) {
    const auto device = MakeDevice(GetParam(), {.threads = 2, .schedule = schedule});
    const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
    const Buffer go = MakeBuffer(*device, 4, "go");
    const Buffer x = MakeBuffer(*device, 8, "x");
    EXPECT_THAT(device->Write(go.All(), testing::Bytes(1)), Succeeds());
    const Buffer seen = MakeBuffer(*device, 4, "seen");
    const Buffer done = MakeBuffer(*device, 4, "done");
    TestDispatch hold(testing::Kernel(*device, "hold"),
                      {{go.All(), Access::kRead}, {View(x, 0, 4), Access::kRead}}, 1);
    TestDispatch peek(testing::Kernel(*device, "peek"),
                      {{View(x, 0, 4), Access::kRead},
                       {seen.All(), Access::kWrite},
                       {done.All(), Access::kReadWrite}},
                      1);
    EXPECT_THAT(session->Dispatch(hold.get()), Succeeds());
    EXPECT_THAT(session->Dispatch(peek.get()), Succeeds());
    EXPECT_THAT(session->Commit(), Succeeds());
    EXPECT_THAT(session->Wait(), Succeeds());
    return testing::ReadWords(*device, seen.All())[0];
  };
  EXPECT_EQ(run({ScheduleKind::kReversed, 0}), 0U);
  // Which goes by what is declared, and so leaves this one in its place.
  EXPECT_EQ(run({ScheduleKind::kLateWrites, 0}), 1U);
}

TEST_P(ExecutedScheduleTest, E8_WaitReportsAConflictWhenEverythingHasRun) {
  const auto device =
      MakeDevice(GetParam(), {.threads = 2, .schedule = {ScheduleKind::kReversed, 0}});
  const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
  Buffer x = MakeBuffer(*device, 256, "x");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(session->Dispatch(Bump(*device, x.All()).get()), Succeeds());
  }
  EXPECT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Dispatch(Bump(*device, x.All()).get()), Succeeds());
  EXPECT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Wait(),
              FailsWith(ErrorCode::kInvalidArgument, "Dispatch 2 of command buffer 1"));
  EXPECT_EQ(session->counters().waits, 1U);
  EXPECT_EQ(testing::ReadWords(*device, x.All())[0], 3U);
  EXPECT_THAT(x.Release(), Succeeds());
}

}  // namespace
}  // namespace assay::gpu
