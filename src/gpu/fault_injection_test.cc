// Every call into the backend fails once, wherever it stands: the error arrives, nothing leaks and
// encoders balance (E2).
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"

#include "gpu/schedule/scheduled_backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using testing::Spy;
using testing::SpyCall;

// One of everything that reaches the backend.
Status RunProgram(Device& device) {
  const std::vector<float> host(64, 1.0f);
  std::vector<float> result(64);
  const auto buffer = [&](const char* label) {
    return device.CreateBuffer({.size_bytes = 256, .label = label, .digest = {}});
  };
  ASSAY_ASSIGN_OR_RETURN(
      const Buffer imported,
      device.ImportHostMemory({.size_bytes = 256, .label = "imported", .digest = {}},
                              std::as_bytes(std::span(host))));
  ASSAY_ASSIGN_OR_RETURN(const Buffer a, buffer("a"));
  ASSAY_ASSIGN_OR_RETURN(const Buffer b, buffer("b"));
  ASSAY_TRY(device.Write(a.All(), std::as_bytes(std::span(host))));
  ASSAY_ASSIGN_OR_RETURN(const KernelId add, device.kernels().Get("add"));
  ASSAY_ASSIGN_OR_RETURN(const KernelId bump, device.kernels().Get("bump"));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, device.CreateSession());
  const std::vector<Binding> sum = {
      {a.All(), Access::kRead}, {imported.All(), Access::kRead}, {b.All(), Access::kWrite}};
  const std::vector<Binding> in_place = {{b.All(), Access::kReadWrite}};
  ASSAY_TRY(session->BeginCapture());
  ASSAY_TRY(session->Dispatch({add, sum, {}, {1, 1, 1}, 0}));
  ASSAY_TRY(session->Dispatch({bump, in_place, {}, {1, 1, 1}, 0}));
  ASSAY_ASSIGN_OR_RETURN(const Graph graph, session->EndCapture());
  for (int i = 0; i < 2; ++i) {
    ASSAY_TRY(session->Replay(graph));
    ASSAY_TRY(session->Dispatch({add, sum, {}, {1, 1, 1}, 0}));
    ASSAY_TRY(session->Commit());
  }
  ASSAY_TRY(session->Wait());
  ASSAY_TRY(device.Read(b.All(), std::as_writable_bytes(std::span(result))));
  ASSAY_ASSIGN_OR_RETURN(const HostMapping mapping, device.Map(b.All(), Access::kRead));
  for (const float value : result) {
    EXPECT_EQ(value, 2.0f);
  }
  return {};
}

// The error arrives with its code and with the name of what failed.
void ExpectFailureOf(const Spy& spy, SpyCall call, const Status& status) {
  const std::string said = "The call \"" + spy.failed_word() + "\" fails as the test asks.";
  ASSERT_THAT(status, assay::testing::FailsWith(Spy::FailureCode(call), said));
  EXPECT_EQ(status.error().subject(), spy.failed_word());
}

class FaultInjectionTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(EveryCall, FaultInjectionTest,
                         ::testing::Range<size_t>(0, testing::kSpyCalls));

// Fails each call of the kind in turn, of a device with the spy alone and of one that a schedule
// stands before.
void FailEveryCall(SpyCall call, const Schedule& schedule) {
  size_t failures = 0;
  for (size_t n = 1;; ++n) {
    SCOPED_TRACE("call number " + std::to_string(n));
    const auto spy = std::make_shared<Spy>();
    const auto device = testing::MakeDevice(
        MakeScheduledBackend(
            testing::MakeSpyBackend(MakeBackend("cpu", {.threads = 2}).value(), spy), schedule)
            .value());
    spy->FailNth(call, n);
    const Status status = RunProgram(*device);
    const Counters counters = device->counters();
    EXPECT_EQ(counters.encoders_created, counters.encoders_released);
    EXPECT_EQ(counters.encoders_created, counters.command_buffers);
    EXPECT_EQ(device->live_buffers(), 0u);
    EXPECT_EQ(device->live_bytes(), 0u);
    EXPECT_EQ(spy->buffers(), 0u);
    EXPECT_EQ(spy->command_buffers(), 0u);
    EXPECT_EQ(spy->queues(), 0u);
    if (!spy->failed()) {
      EXPECT_THAT(status, assay::testing::Succeeds());
      break;
    }
    ++failures;
    ExpectFailureOf(*spy, call, status);
    // The device is as good as before.
    EXPECT_THAT(RunProgram(*device), assay::testing::Succeeds());
  }
  EXPECT_GT(failures, 0u) << "the program does not make this call";
}

TEST_P(FaultInjectionTest, E2_NothingLeaksAndEncodersBalance) {
  FailEveryCall(static_cast<SpyCall>(GetParam()), {});
}

TEST_P(FaultInjectionTest, E2_E8_NorUnderASchedule) {
  FailEveryCall(static_cast<SpyCall>(GetParam()), {ScheduleKind::kReversed, 0});
}

// One session in its three modes, on a plain and on a checked device.
struct SessionFault {
  SpyCall call;
  BarrierMode mode;
  bool checked;
};

std::vector<SessionFault> SessionFaults() {
  std::vector<SessionFault> faults;
  for (const SpyCall call : {SpyCall::kBegin, SpyCall::kDispatch, SpyCall::kBarrier,
                             SpyCall::kEndEncoding, SpyCall::kCommit, SpyCall::kWait}) {
    for (const BarrierMode mode :
         {BarrierMode::kManual, BarrierMode::kAutomatic, BarrierMode::kSerial}) {
      for (const bool checked : {false, true}) faults.push_back({call, mode, checked});
    }
  }
  return faults;
}

// Three command buffers; each adds 1 to every word twice.
Status BumpSixTimes(Device& device, Session& session, const BufferView& view) {
  for (int i = 0; i < 3; ++i) {
    ASSAY_TRY(session.Dispatch(testing::Bump(device, view).get()));
    ASSAY_TRY(session.Barrier());
    ASSAY_TRY(session.Dispatch(testing::Bump(device, view).get()));
    ASSAY_TRY(session.Commit());
  }
  return session.Wait();
}

class SessionFaultTest : public ::testing::TestWithParam<SessionFault> {};
INSTANTIATE_TEST_SUITE_P(EveryCall, SessionFaultTest, ::testing::ValuesIn(SessionFaults()));

TEST_P(SessionFaultTest, E2_TheSameSessionWorksAfterReset) {
  const auto [call, mode, checked] = GetParam();
  size_t failures = 0;
  for (size_t n = 1;; ++n) {
    SCOPED_TRACE("call number " + std::to_string(n));
    const auto spy = std::make_shared<Spy>();
    const auto device = testing::MakeDevice(
        testing::MakeSpyBackend(MakeBackend("cpu", {.threads = 2}).value(), spy),
        {.checked = checked});
    Buffer buffer = testing::MakeBuffer(*device, 256);
    const auto session = device->CreateSession({.barriers = mode}).value();
    spy->FailNth(call, n);
    const Status status = BumpSixTimes(*device, *session, buffer.All());
    const bool failed = spy->failed();
    spy->FailNone();
    if (failed) {
      ++failures;
      ExpectFailureOf(*spy, call, status);
      session->Reset();
      // What had been committed runs; a second wait is told of no failure.
      ASSERT_THAT(session->Wait(), assay::testing::Succeeds());
      EXPECT_EQ(session->counters().encoders_created, session->counters().encoders_released);
      EXPECT_EQ(spy->command_buffers(), 0u);
    }
    std::vector<std::byte> zeros(256);
    ASSERT_THAT(device->Write(buffer.All(), zeros), assay::testing::Succeeds());
    ASSERT_THAT(BumpSixTimes(*device, *session, buffer.All()), assay::testing::Succeeds());
    EXPECT_EQ(testing::ReadWords(*device, buffer.All()), std::vector<uint32_t>(64, 6));
    EXPECT_EQ(session->counters().encoders_created, session->counters().encoders_released);
    EXPECT_THAT(buffer.Release(), assay::testing::Succeeds());
    EXPECT_EQ(device->live_bytes(), 0u);
    EXPECT_EQ(spy->buffers(), 0u);
    if (!failed) break;
  }
  EXPECT_GT(failures, 0u) << "the program does not make this call";
}

// What the backend refuses has not been issued, so it is not counted (E3).
TEST(FaultInjection, E3_WhatFailsIsNotCounted) {
  struct Case {
    SpyCall call;
    size_t n;
    Counters counters;
  };
  // Of one command buffer: dispatch, barrier, dispatch, commit, wait.
  const Case cases[] = {
      {SpyCall::kBegin, 1, {0, 0, 0, 0, 0, 0, 0}},
      {SpyCall::kDispatch, 1, {1, 1, 1, 0, 0, 0, 0}},
      {SpyCall::kBarrier, 1, {1, 1, 1, 1, 0, 0, 0}},
      {SpyCall::kDispatch, 2, {1, 1, 1, 1, 1, 0, 0}},
      {SpyCall::kEndEncoding, 1, {1, 1, 1, 2, 1, 0, 0}},
      {SpyCall::kCommit, 1, {1, 1, 1, 2, 1, 0, 0}},
      {SpyCall::kWait, 1, {1, 1, 1, 2, 1, 1, 0}},
  };
  for (const Case& one : cases) {
    const auto spy = std::make_shared<Spy>();
    const auto device =
        testing::MakeDevice(testing::MakeSpyBackend(MakeBackend("null").value(), spy));
    const Buffer buffer = testing::MakeBuffer(*device, 64);
    const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
    spy->FailNth(one.call, one.n);
    const auto program = [&]() -> Status {
      ASSAY_TRY(session->Dispatch(testing::Bump(*device, buffer.All()).get()));
      ASSAY_TRY(session->Barrier());
      ASSAY_TRY(session->Dispatch(testing::Bump(*device, buffer.All()).get()));
      ASSAY_TRY(session->Commit());
      return session->Wait();
    };
    ExpectFailureOf(*spy, one.call, program());
    EXPECT_EQ(session->counters(), one.counters) << spy->failed_word() << " " << one.n;
  }
}

TEST(FaultInjection, AFailedCommitLeavesACleanSession) {
  const auto spy = std::make_shared<Spy>();
  const auto device =
      testing::MakeDevice(testing::MakeSpyBackend(MakeBackend("cpu", {.threads = 1}).value(), spy));
  const auto session = device->CreateSession().value();
  Buffer buffer = testing::MakeBuffer(*device, 64);
  const auto bump = testing::Bump(*device, buffer.All());
  for (const SpyCall call : {SpyCall::kEndEncoding, SpyCall::kCommit}) {
    spy->FailNth(call, 1);
    ASSERT_THAT(session->Dispatch(bump.get()), assay::testing::Succeeds());
    EXPECT_THAT(session->Commit(),
                assay::testing::FailsWith(ErrorCode::kDevice, "committing a command buffer"));
    EXPECT_EQ(session->counters().commits, 0u);
    EXPECT_EQ(session->counters().encoders_created, session->counters().encoders_released);
    std::vector<std::byte> bytes(64);
    EXPECT_THAT(device->Write(buffer.All(), bytes), assay::testing::Succeeds());
  }
  // Nothing of the failed ones has run.
  ASSERT_THAT(session->Dispatch(bump.get()), assay::testing::Succeeds());
  ASSERT_THAT(session->Commit(), assay::testing::Succeeds());
  ASSERT_THAT(session->Wait(), assay::testing::Succeeds());
  EXPECT_EQ(testing::ReadWords(*device, buffer.All())[0], 1u);
  EXPECT_THAT(buffer.Release(), assay::testing::Succeeds());
}

TEST(FaultInjection, AFailedWaitKeepsEverythingInFlight) {
  const auto spy = std::make_shared<Spy>();
  const auto device =
      testing::MakeDevice(testing::MakeSpyBackend(MakeBackend("cpu", {.threads = 2}).value(), spy));
  const auto session = device->CreateSession().value();
  Buffer buffer = testing::MakeBuffer(*device, 64);
  ASSERT_THAT(session->Dispatch(testing::Bump(*device, buffer.All()).get()),
              assay::testing::Succeeds());
  ASSERT_THAT(session->Commit(), assay::testing::Succeeds());
  spy->FailNth(SpyCall::kWait, 1);
  EXPECT_THAT(session->Wait(), assay::testing::FailsWith(ErrorCode::kDevice, "waiting"));
  EXPECT_EQ(session->counters().waits, 0u);
  EXPECT_THAT(buffer.Release(), assay::testing::FailsWith(ErrorCode::kCommandBuffer, ""));
  EXPECT_THAT(session->Wait(), assay::testing::Succeeds());
  EXPECT_THAT(buffer.Release(), assay::testing::Succeeds());
}

}  // namespace
}  // namespace assay::gpu
