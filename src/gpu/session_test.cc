#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/command_encoder.h"
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
using testing::TestDispatch;
using testing::View;
using Log = std::vector<std::string>;

// A device over the null backend whose calls can be read back.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    device_ = testing::MakeDevice(testing::MakeSpyBackend(MakeBackend("null").value(), spy_));
    buffer_ = MakeBuffer(*device_, 4096, "b");
  }
  std::unique_ptr<Session> Open(BarrierMode mode) {
    auto session = device_->CreateSession({.barriers = mode}).value();
    spy_->TakeLog();
    return session;
  }
  // "bump" on bytes [begin, end) of the buffer.
  TestDispatch BumpBytes(uint64_t begin, uint64_t end) {
    return Bump(*device_, View(buffer_, begin, end - begin));
  }
  // "add" that reads [r, r + 64) twice and writes [w, w + 64).
  TestDispatch AddBytes(uint64_t r, uint64_t w) {
    return Elementwise(*device_, "add", View(buffer_, r, 64), View(buffer_, r, 64),
                       View(buffer_, w, 64));
  }
  TestDispatch Nothing() { return TestDispatch(testing::Kernel(*device_, "nothing"), {}, 1); }
  // The log without the words of building kernels.
  Log TakeLog() {
    Log log = spy_->TakeLog();
    std::erase_if(log, [](const std::string& word) { return word.starts_with("kernel"); });
    return log;
  }

  std::shared_ptr<testing::Spy> spy_ = std::make_shared<testing::Spy>();
  std::unique_ptr<Device> device_;
  Buffer buffer_;
};

// --- E1, E2, E3

TEST_F(SessionTest, E1_OneEncoderACommandBufferOpenedLazily) {
  const auto session = Open(BarrierMode::kManual);
  EXPECT_EQ(session->counters(), Counters());
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
    ASSERT_THAT(session->Dispatch(BumpBytes(64, 128).get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
  }
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(TakeLog(), (Log{"begin", "dispatch bump", "dispatch bump", "end", "commit", "begin",
                            "dispatch bump", "dispatch bump", "end", "commit", "wait"}));
  EXPECT_EQ(session->counters(), (Counters{2, 2, 2, 4, 0, 2, 1}));
}

TEST_F(SessionTest, E3_NothingIssuedIsNothingCounted) {
  const auto session = Open(BarrierMode::kManual);
  EXPECT_THAT(session->Barrier(), Succeeds());
  EXPECT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Wait(), Succeeds());
  session->Reset();
  EXPECT_EQ(TakeLog(), Log());
  EXPECT_EQ(session->counters(), Counters());
}

TEST_F(SessionTest, E3_CountersBelongToTheSessionAndSumUpInTheDevice) {
  const auto first = Open(BarrierMode::kManual);
  {
    const auto second = Open(BarrierMode::kManual);
    ASSERT_THAT(second->Dispatch(BumpBytes(0, 64).get()), Succeeds());
    ASSERT_THAT(second->Barrier(), Succeeds());
    EXPECT_EQ(second->counters().barriers, 1u);
  }
  EXPECT_EQ(first->counters(), Counters());
  ASSERT_THAT(first->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_EQ(device_->counters(), (Counters{2, 2, 1, 2, 1, 0, 0}));
  const auto other = testing::MakeDevice("null");
  EXPECT_EQ(other->counters(), Counters());
}

TEST_F(SessionTest, E2_ResetAndDestructionReleaseTheEncoder) {
  {
    const auto session = Open(BarrierMode::kManual);
    ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
    session->Reset();
    EXPECT_EQ(session->counters(), (Counters{1, 1, 1, 1, 0, 0, 0}));
    EXPECT_EQ(spy_->command_buffers(), 0u);
    ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
    EXPECT_EQ(spy_->command_buffers(), 1u);
  }
  EXPECT_EQ(device_->counters(), (Counters{2, 2, 2, 2, 0, 0, 0}));
  EXPECT_EQ(spy_->command_buffers(), 0u);
  EXPECT_EQ(TakeLog(), (Log{"begin", "dispatch bump", "end", "begin", "dispatch bump", "end"}));
}

TEST_F(SessionTest, E3_TheWaitOfASessionsEndIsCounted) {
  {
    const auto session = Open(BarrierMode::kManual);
    ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
  }
  EXPECT_EQ(TakeLog(), (Log{"begin", "dispatch bump", "end", "commit", "wait"}));
  EXPECT_EQ(device_->counters(), (Counters{1, 1, 1, 1, 0, 1, 1}));
}

TEST_F(SessionTest, E2_AnExceptionInTheMiddleReleasesTheEncoder) {
  try {
    const auto session = Open(BarrierMode::kManual);
    ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(device_->counters().encoders_created, 1u);
  EXPECT_EQ(device_->counters().encoders_released, 1u);
}

TEST_F(SessionTest, E2_MovingAnEncoderReleasesWhatTheTargetHeld) {
  const auto queue = MakeBackend("null").value()->CreateQueue().value();
  Counters counters;
  CommandEncoder first = CommandEncoder::Open(queue.get(), &counters).value();
  CommandEncoder second = CommandEncoder::Open(queue.get(), &counters).value();
  EXPECT_EQ(counters.encoders_created, 2u);
  EXPECT_EQ(counters.encoders_released, 0u);
  first = std::move(second);
  EXPECT_EQ(counters.encoders_released, 1u);
  EXPECT_TRUE(first.is_open());
  // An encoder that has ended may be asked again, and is closed.
  CommandEncoder* const ended = &first;
  EXPECT_NE(std::move(*ended).EndEncoder().value(), nullptr);
  EXPECT_FALSE(ended->is_open());
  EXPECT_EQ(std::move(*ended).EndEncoder().value(), nullptr);
  EXPECT_EQ(counters.encoders_released, 2u);
}

// --- E5

TEST_F(SessionTest, E5_AutomaticInsertsABarrierExactlyAtAConflict) {
  const auto session = Open(BarrierMode::kAutomatic);
  const auto dispatch = [&](const TestDispatch& d) {
    ASSERT_THAT(session->Dispatch(d.get()), Succeeds());
  };
  dispatch(AddBytes(0, 64));     // r[0,64) w[64,128)
  dispatch(AddBytes(0, 128));    // Read/read and touching writes: none.
  dispatch(AddBytes(64, 192));   // Reads what was written: barrier.
  dispatch(AddBytes(128, 256));  // Ordered by that barrier already: none.
  dispatch(AddBytes(320, 64));   // Writes what was read since: barrier.
  dispatch(AddBytes(320, 64));   // Writes what was written: barrier.
  EXPECT_EQ(TakeLog(), (Log{"begin", "dispatch add", "dispatch add", "barrier", "dispatch add",
                            "dispatch add", "barrier", "dispatch add", "barrier", "dispatch add"}));
  EXPECT_EQ(session->counters().barriers, 3u);
}

TEST_F(SessionTest, E5_OneByteOfOverlapIsAConflict) {
  const auto session = Open(BarrierMode::kAutomatic);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 65).get()), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(65, 128).get()), Succeeds());
  EXPECT_EQ(session->counters().barriers, 0u);
  ASSERT_THAT(session->Dispatch(BumpBytes(127, 200).get()), Succeeds());
  EXPECT_EQ(session->counters().barriers, 1u);
}

TEST_F(SessionTest, E5_AHandPlacedBarrierClearsTheTracker) {
  const auto session = Open(BarrierMode::kAutomatic);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Barrier(), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_EQ(session->counters().barriers, 1u);
}

TEST_F(SessionTest, E5_ACommandBufferStartsWithoutHistory) {
  const auto session = Open(BarrierMode::kAutomatic);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  session->Reset();
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_EQ(session->counters().barriers, 0u);
}

TEST_F(SessionTest, E5_ADispatchWithoutRangesTouchesEverything) {
  const auto session = Open(BarrierMode::kAutomatic);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Dispatch(Nothing().get()), Succeeds());
  ASSERT_THAT(session->Dispatch(Nothing().get()), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_EQ(TakeLog(), (Log{"begin", "dispatch bump", "barrier", "dispatch nothing", "barrier",
                            "dispatch nothing", "barrier", "dispatch bump"}));
}

TEST_F(SessionTest, E5_SerialPutsABarrierAfterEveryDispatch) {
  const auto session = Open(BarrierMode::kSerial);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(64, 128).get()), Succeeds());
  EXPECT_EQ(TakeLog(), (Log{"begin", "dispatch bump", "barrier", "dispatch bump", "barrier"}));
}

TEST_F(SessionTest, E5_ManualIssuesWhatTheCallerPlaces) {
  const auto session = Open(BarrierMode::kManual);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Barrier(), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_EQ(TakeLog(),
            (Log{"begin", "dispatch bump", "dispatch bump", "barrier", "dispatch bump"}));
}

// --- E12

TEST_F(SessionTest, E12_ARefusedDispatchNamesKernelAndBindingAndChangesNothing) {
  const auto session = Open(BarrierMode::kAutomatic);
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;

  TestDispatch few = BumpBytes(0, 64);
  few.bindings().clear();
  EXPECT_THAT(session->Dispatch(few.get()),
              FailsWith(kInvalid,
                        "bindings (0) of a dispatch of kernel \"bump\" differ in number "
                        "from the kernel's (1)"));
  TestDispatch constants(testing::Kernel(*device_, "bump"), {{buffer_.All(), Access::kReadWrite}},
                         1, testing::Bytes(1));
  EXPECT_THAT(session->Dispatch(constants.get()),
              FailsWith(kInvalid, "constants (4 bytes) of a dispatch of kernel \"bump\""));
  for (const Extent3 grid : {Extent3{0, 1, 1}, Extent3{1, 0, 1}, Extent3{1, 1, 0},
                             Extent3{1u << 16, 1u << 16, 1}, Extent3{1u << 31, 1u << 31, 4}}) {
    TestDispatch gridded = BumpBytes(0, 64);
    gridded.fields().grid = grid;
    EXPECT_THAT(session->Dispatch(gridded.get()), FailsWith(kInvalid, "of kernel \"bump\""));
  }
  TestDispatch shared = BumpBytes(0, 64);
  shared.fields().shared_bytes = device_->info().max_shared_bytes + 1;
  EXPECT_THAT(session->Dispatch(shared.get()), FailsWith(kInvalid, "shared memory (262145 bytes)"));
  TestDispatch empty = AddBytes(0, 64);
  empty.bindings()[1].view = {};
  EXPECT_THAT(session->Dispatch(empty.get()),
              FailsWith(kInvalid, "Binding 1 of kernel \"add\" is empty"));
  TestDispatch unknown = BumpBytes(0, 64);
  unknown.fields().kernel = KernelId(99);
  EXPECT_THAT(session->Dispatch(unknown.get()), FailsWith(ErrorCode::kKernelUnknown, "id 99"));
  unknown.fields().kernel = KernelId();
  EXPECT_THAT(session->Dispatch(unknown.get()), FailsWith(ErrorCode::kKernelUnknown, "id 0"));

  EXPECT_EQ(session->counters(), Counters());
  EXPECT_EQ(TakeLog(), Log());
  EXPECT_THAT(buffer_.Release(), Succeeds()) << "a refused dispatch must not hold its buffers";
}

TEST_F(SessionTest, E9_ADroppedBarrierIsNeitherIssuedNorCounted) {
  for (const BarrierMode mode :
       {BarrierMode::kManual, BarrierMode::kAutomatic, BarrierMode::kSerial}) {
    const auto session = device_->CreateSession({.barriers = mode, .drop_barrier = 2}).value();
    spy_->TakeLog();
    // In each command buffer anew, also behind one that was abandoned.
    for (int i = 0; i < 3; ++i) {
      for (int d = 0; d < 4; ++d) {
        ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
        if (mode == BarrierMode::kManual && d < 3) {
          ASSERT_THAT(session->Barrier(), Succeeds());
        }
      }
      if (i == 1) {
        session->Reset();
        EXPECT_EQ(TakeLog().size(), mode == BarrierMode::kSerial ? 9U : 8U);
        continue;
      }
      ASSERT_THAT(session->Commit(), Succeeds());
      Log expected = {"begin",   "dispatch bump", "barrier", "dispatch bump", "dispatch bump",
                      "barrier", "dispatch bump", "end",     "commit"};
      if (mode == BarrierMode::kSerial) expected.insert(expected.end() - 2, "barrier");
      EXPECT_EQ(TakeLog(), expected);
    }
    EXPECT_EQ(session->counters().barriers, mode == BarrierMode::kSerial ? 9U : 6U);
  }
}

// --- A commit in the place of a barrier

// A log in one line: d for a dispatch, | for a barrier, / for the end and commit of a command
// buffer.
std::string Line(const Log& log) {
  std::string line;
  for (const std::string& word : log) {
    if (word.starts_with("dispatch")) line += 'd';
    if (word == "barrier") line += '|';
    if (word == "commit") line += '/';
  }
  return line;
}

TEST_F(SessionTest, E1_ACommitStandsInForABarrierAndNowhereElse) {
  struct Case {
    uint32_t every;
    uint64_t drop;
    std::string_view line;
  };
  // A quarter, a half, then as many as asked for, each up to where a barrier stands.
  for (const Case& one :
       {Case{0, 0, "dd|dd|dd|dd|dd|dd|dd|dd|d/"}, Case{1, 0, "dd/dd/dd/dd/dd/dd/dd/dd/d/"},
        Case{8, 0, "dd/dd|dd/dd|dd|dd|dd/dd|d/"}, Case{9, 0, "dd/dd|dd/dd|dd|dd|dd|dd/d/"},
        Case{64, 0, "dd|dd|dd|dd|dd|dd|dd|dd/d/"}, Case{8, 1, "dddd/dddd/dddd|dd|dd/d/"}}) {
    SCOPED_TRACE(::testing::Message() << one.every << " dropping " << one.drop);
    const auto session = device_
                             ->CreateSession({.barriers = BarrierMode::kManual,
                                              .drop_barrier = one.drop,
                                              .commit_every = one.every})
                             .value();
    // The short ones come again behind each Wait.
    for (int round = 0; round < 2; ++round) {
      TakeLog();
      const Counters before = session->counters();
      for (uint64_t i = 0; i < 17; ++i) {
        ASSERT_THAT(session->Dispatch(BumpBytes(64 * i, 64 * i + 64).get()), Succeeds());
        if (i % 2 == 1) {
          ASSERT_THAT(session->Barrier(), Succeeds());
        }
      }
      ASSERT_THAT(session->Commit(), Succeeds());
      ASSERT_THAT(session->Wait(), Succeeds());
      EXPECT_EQ(Line(TakeLog()), one.line);
      const Counters& now = session->counters();
      const auto parts = static_cast<uint64_t>(std::ranges::count(one.line, '/'));
      EXPECT_EQ(now.dispatches - before.dispatches, 17U);
      EXPECT_EQ(now.barriers - before.barriers,
                static_cast<uint64_t>(std::ranges::count(one.line, '|')));
      EXPECT_EQ(now.commits - before.commits, parts);
      EXPECT_EQ(now.command_buffers - before.command_buffers, parts);
      EXPECT_EQ(now.encoders_released, now.encoders_created);
      EXPECT_EQ(now.waits - before.waits, 1U);
    }
  }
}

TEST_F(SessionTest, E12_AFailedCommitInThePlaceOfABarrierSticksUntilReset) {
  const auto session =
      device_->CreateSession({.barriers = BarrierMode::kManual, .commit_every = 1}).value();
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  ASSERT_THAT(session->Barrier(), Succeeds());
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  spy_->FailNth(testing::SpyCall::kCommit, 1);
  const auto failure = FailsWith(ErrorCode::kDevice, "fails as the test asks");
  EXPECT_THAT(session->Barrier(), failure);
  // Of the second one nothing counts but that it was opened and encoded.
  EXPECT_EQ(session->counters(), (Counters{2, 2, 2, 2, 0, 1, 0}));
  EXPECT_EQ(spy_->command_buffers(), 0u);
  // What the barrier was to keep behind must not run without it.
  EXPECT_THAT(session->Dispatch(BumpBytes(0, 64).get()), failure);
  EXPECT_THAT(session->Commit(), failure);
  EXPECT_THAT(session->Wait(), Succeeds());
  session->Reset();
  EXPECT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Wait(), Succeeds());
}

TEST_F(SessionTest, E1_ACommitThatTheHostHoldsUpLeavesTheCommandBufferOpen) {
  const auto device = testing::MakeDevice("cpu");
  const Buffer buffer = MakeBuffer(*device, 64, "held");
  const auto session =
      device->CreateSession({.barriers = BarrierMode::kManual, .commit_every = 1}).value();
  const TestDispatch bump = Bump(*device, buffer.All());
  {
    const HostMapping mapping = device->Map(buffer.All(), Access::kRead).value();
    ASSERT_THAT(session->Dispatch(bump.get()), Succeeds());
    EXPECT_THAT(session->Barrier(), FailsWith(ErrorCode::kCommandBuffer, "held"));
  }
  ASSERT_THAT(session->Barrier(), Succeeds());
  ASSERT_THAT(session->Dispatch(bump.get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device, buffer.All())[0], 2u);
  EXPECT_EQ(session->counters(), (Counters{2, 2, 2, 2, 0, 2, 1}));
}

TEST_F(SessionTest, E12_BackendFailureSticksUntilReset) {
  const auto session = Open(BarrierMode::kManual);
  ASSERT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  spy_->FailNth(testing::SpyCall::kDispatch, 1);
  const auto failure = FailsWith(ErrorCode::kDevice, "fails as the test asks");
  EXPECT_THAT(session->Dispatch(BumpBytes(0, 64).get()), failure);
  EXPECT_EQ(session->counters(), (Counters{1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(spy_->command_buffers(), 0u);
  EXPECT_THAT(session->Dispatch(BumpBytes(0, 64).get()), failure);
  EXPECT_THAT(session->Barrier(), failure);
  EXPECT_THAT(session->Commit(), FailsWith(ErrorCode::kDevice, "Reset abandons it"));
  session->Reset();
  EXPECT_THAT(session->Dispatch(BumpBytes(0, 64).get()), Succeeds());
  EXPECT_THAT(session->Commit(), Succeeds());
}

TEST_F(SessionTest, ReadsOfCountersFromOtherThreadsAreSafe) {
  const auto session = Open(BarrierMode::kSerial);
  const TestDispatch bump = BumpBytes(0, 64);
  std::thread reader([&] {
    uint64_t last = 0;
    while (last < 1000) {
      const Counters sum = device_->counters();
      EXPECT_GE(sum.dispatches, last);
      last = sum.dispatches;
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < 1000; ++i) ASSERT_THAT(session->Dispatch(bump.get()), Succeeds());
  reader.join();
}

}  // namespace
}  // namespace assay::gpu
