#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"

#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Bump;
using testing::MakeBuffer;
using testing::View;
using Log = std::vector<std::string>;

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() {
    device_ = testing::MakeDevice(testing::MakeSpyBackend(MakeBackend("cpu").value(), spy_));
    buffer_ = MakeBuffer(*device_, 256, "b");
    testing::Kernel(*device_, "bump");
  }
  std::unique_ptr<Session> Open(BarrierMode mode) {
    auto session = device_->CreateSession({.barriers = mode}).value();
    spy_->TakeLog();
    return session;
  }
  // Two bumps of the same bytes, with a hand-placed barrier between them.
  Graph Capture(Session& session) {
    EXPECT_THAT(session.BeginCapture(), Succeeds());
    EXPECT_THAT(session.Dispatch(Bump(*device_, View(buffer_, 0, 64)).get()), Succeeds());
    EXPECT_THAT(session.Barrier(), Succeeds());
    EXPECT_THAT(session.Dispatch(Bump(*device_, View(buffer_, 0, 128)).get()), Succeeds());
    return session.EndCapture().value();
  }

  std::shared_ptr<testing::Spy> spy_ = std::make_shared<testing::Spy>();
  std::unique_ptr<Device> device_;
  Buffer buffer_;
};

TEST_F(GraphTest, E3_CaptureIssuesNothingAndReplayCountsOnce) {
  const auto session = Open(BarrierMode::kManual);
  const Graph graph = Capture(*session);
  EXPECT_EQ(graph.dispatch_count(), 2u);
  EXPECT_EQ(spy_->TakeLog(), Log());
  EXPECT_EQ(session->counters(), Counters());
  ASSERT_THAT(session->Replay(graph), Succeeds());
  EXPECT_EQ(session->counters(), (Counters{1, 1, 0, 2, 1, 0, 0}));
  ASSERT_THAT(session->Barrier(), Succeeds());
  ASSERT_THAT(session->Replay(graph), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(session->counters(), (Counters{1, 1, 1, 4, 3, 1, 1}));
  const std::vector<uint32_t> words = testing::ReadWords(*device_, buffer_.All());
  EXPECT_EQ(words[0], 4u);
  EXPECT_EQ(words[31], 2u);
  EXPECT_EQ(words[32], 0u);
}

TEST_F(GraphTest, ReplayUsesTheModeOfItsSession) {
  const auto serial = Open(BarrierMode::kSerial);
  const auto automatic = Open(BarrierMode::kAutomatic);
  ASSERT_THAT(serial->BeginCapture(), Succeeds());
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(serial->Dispatch(Bump(*device_, View(buffer_, 0, 64)).get()), Succeeds());
  }
  const Graph graph = serial->EndCapture().value();
  ASSERT_THAT(automatic->Replay(graph), Succeeds());
  EXPECT_EQ(automatic->counters().barriers, 1u);
  ASSERT_THAT(serial->Replay(graph), Succeeds());
  EXPECT_EQ(serial->counters().barriers, 2u);
}

TEST_F(GraphTest, HoldsItsBuffersAliveAndCopiesItsConstants) {
  const auto session = Open(BarrierMode::kManual);
  ASSERT_THAT(session->BeginCapture(), Succeeds());
  {
    const Buffer local = MakeBuffer(*device_, 64, "local");
    ASSERT_THAT(session->Dispatch(testing::Meet(*device_, local.All(), 1).get()), Succeeds());
  }
  std::optional<Graph> graph = session->EndCapture().value();
  EXPECT_EQ(device_->live_buffers(), 2u);
  ASSERT_THAT(session->Replay(*graph), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Wait(), Succeeds());
  graph.reset();
  EXPECT_EQ(device_->live_buffers(), 1u);
}

TEST_F(GraphTest, ARefusedReplayChangesNothing) {
  const auto session = Open(BarrierMode::kManual);
  Buffer second = MakeBuffer(*device_, 64, "second");
  ASSERT_THAT(session->BeginCapture(), Succeeds());
  ASSERT_THAT(session->Dispatch(Bump(*device_, buffer_.All()).get()), Succeeds());
  ASSERT_THAT(session->Dispatch(Bump(*device_, second.All()).get()), Succeeds());
  const Graph graph = session->EndCapture().value();
  ASSERT_THAT(second.Release(), Succeeds());
  EXPECT_THAT(session->Replay(graph), FailsWith(ErrorCode::kInvalidArgument, "buffer \"second\""));
  EXPECT_EQ(session->counters(), Counters());
}

TEST_F(GraphTest, CallsOutOfOrderAreErrors) {
  const auto session = Open(BarrierMode::kManual);
  const auto wrong = FailsWith(ErrorCode::kCommandBuffer, "");
  EXPECT_THAT(session->EndCapture(), wrong);
  ASSERT_THAT(session->BeginCapture(), Succeeds());
  EXPECT_THAT(session->BeginCapture(), wrong);
  EXPECT_THAT(session->Commit(), wrong);
  EXPECT_THAT(session->Wait(), wrong);
  session->Reset();
  EXPECT_THAT(session->EndCapture(), wrong);
  EXPECT_THAT(session->Replay(Graph()), FailsWith(ErrorCode::kInvalidArgument, "empty"));
}

TEST_F(GraphTest, E11_OfAnotherDeviceIsAnError) {
  const auto session = Open(BarrierMode::kManual);
  const Graph graph = Capture(*session);
  const auto other = testing::MakeDevice("cpu");
  const auto foreign = other->CreateSession().value();
  EXPECT_THAT(foreign->Replay(graph), FailsWith(ErrorCode::kInvalidArgument, "another device"));
}

TEST_F(GraphTest, CaptureWithinAReplayNests) {
  const auto session = Open(BarrierMode::kManual);
  const Graph inner = Capture(*session);
  ASSERT_THAT(session->BeginCapture(), Succeeds());
  ASSERT_THAT(session->Replay(inner), Succeeds());
  ASSERT_THAT(session->Replay(inner), Succeeds());
  const Graph outer = session->EndCapture().value();
  EXPECT_EQ(outer.dispatch_count(), 4u);
  EXPECT_EQ(session->counters(), Counters());
  ASSERT_THAT(session->Replay(outer), Succeeds());
  EXPECT_EQ(session->counters(), (Counters{1, 1, 0, 4, 2, 0, 0}));
}

}  // namespace
}  // namespace assay::gpu
