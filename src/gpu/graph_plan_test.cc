// Plans: what they fuse, what they leave alone and why, and which graphs they take.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
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
using ::testing::ElementsAre;
using testing::Elementwise;
using ::testing::IsEmpty;
using testing::TestDispatch;
using testing::View;

constexpr uint64_t kBytes = 256;

class GraphPlanTest : public ::testing::Test {
 protected:
  GraphPlanTest() {
    device_ = testing::MakeDevice("cpu");
    session_ = device_->CreateSession({.barriers = BarrierMode::kManual}).value();
    for (Buffer* buffer : {&a_, &b_, &c_, &d_, &e_, &tmp_, &out_}) {
      *buffer = testing::MakeBuffer(*device_, 4 * kBytes);
    }
  }
  static BufferView At(const Buffer& buffer, uint64_t offset = 0) {
    return View(buffer, offset, kBytes);
  }
  TestDispatch Add(const BufferView& a, const BufferView& b, const BufferView& out) {
    return Elementwise(*device_, "add", a, b, out);
  }
  TestDispatch Mul(const BufferView& a, const BufferView& b, const BufferView& out) {
    return Elementwise(*device_, "mul", a, b, out);
  }
  Graph Capture(const std::vector<TestDispatch>& dispatches) {
    EXPECT_THAT(session_->BeginCapture(), Succeeds());
    for (const TestDispatch& dispatch : dispatches) {
      EXPECT_THAT(session_->Dispatch(dispatch.get()), Succeeds());
      EXPECT_THAT(session_->Barrier(), Succeeds());
    }
    return session_->EndCapture().value();
  }
  // With tmp_ as scratch.
  PlanOptions Fusing() const { return {.fusions = testing::AddMulRule(), .scratch = {tmp_.All()}}; }
  GraphPlan Plan(const Graph& graph, const PlanOptions& options) {
    const Graph* const sample = &graph;
    Result<GraphPlan> plan = GraphPlan::Create(*device_, {&sample, 1}, options);
    EXPECT_THAT(plan, Succeeds());
    return plan ? std::move(*plan) : GraphPlan();
  }
  PlanReport Report(const std::vector<TestDispatch>& dispatches, const PlanOptions& options) {
    const Graph graph = Capture(dispatches);
    return Plan(graph, options).report();
  }
  void ExpectRefused(const std::vector<TestDispatch>& dispatches, const PlanOptions& options,
                     Refusal refusal, uint32_t other) {
    const PlanReport report = Report(dispatches, options);
    EXPECT_EQ(report.fusions, 0u);
    ASSERT_EQ(report.refused.size(), 1u);
    EXPECT_EQ(report.refused[0].kernel, "add_mul");
    EXPECT_EQ(RefusalName(report.refused[0].refusal), RefusalName(refusal));
    EXPECT_EQ(report.refused[0].other, other);
  }
  std::vector<TestDispatch> AddThenMul() {
    std::vector<TestDispatch> made;
    made.push_back(Add(At(a_), At(b_), At(tmp_)));
    made.push_back(Mul(At(tmp_), At(c_), At(out_)));
    return made;
  }
  std::vector<TestDispatch> AddThenMulThen(TestDispatch more) {
    auto made = AddThenMul();
    made.push_back(std::move(more));
    return made;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  Buffer a_, b_, c_, d_, e_, tmp_, out_;
};

// --- Fusing

TEST_F(GraphPlanTest, E10_FusesAValueIntoItsOneReader) {
  const PlanReport report = Report(AddThenMul(), Fusing());
  EXPECT_EQ(report.fusions, 1u);
  EXPECT_EQ(report.dispatches, 1u);
  EXPECT_EQ(report.dispatches_recorded, 2u);
  EXPECT_EQ(report.barriers_recorded, 1u);
  EXPECT_EQ(report.barriers_least, 1u);
  EXPECT_EQ(report.barriers, 0u);
  EXPECT_THAT(report.refused, IsEmpty());
}

TEST_F(GraphPlanTest, E10_FusedBitsAreThoseOfTheParts) {
  std::vector<float> values(kBytes / sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i) - 2.7f;
  for (const Buffer& buffer : {a_, b_, c_}) testing::WriteFloats(*device_, At(buffer), values);
  const Graph graph = Capture(AddThenMul());
  ASSERT_THAT(session_->Replay(graph), Succeeds());
  ASSERT_THAT(session_->Commit(), Succeeds());
  ASSERT_THAT(session_->Wait(), Succeeds());
  const auto expected = testing::ReadWords(*device_, out_.All());
  testing::WriteFloats(*device_, At(out_), std::vector<float>(values.size()));
  const Counters before = session_->counters();
  const GraphPlan plan = Plan(graph, Fusing());
  ASSERT_THAT(session_->Replay(graph, plan), Succeeds());
  ASSERT_THAT(session_->Commit(), Succeeds());
  ASSERT_THAT(session_->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device_, out_.All()), expected);
  EXPECT_EQ(session_->counters().dispatches - before.dispatches, 1u);
  EXPECT_EQ(session_->counters().barriers, before.barriers);
}

// Fault 8.
TEST_F(GraphPlanTest, E10_RefusesWhileAnotherDispatchReadsTheValue) {
  ExpectRefused(AddThenMulThen(Bump(*device_, View(tmp_, kBytes - 4, 8))), Fusing(),
                Refusal::kReader, 2);
  // Beside it.
  EXPECT_EQ(Report(AddThenMulThen(Bump(*device_, View(tmp_, kBytes, 8))), Fusing()).fusions, 1u);
}

TEST_F(GraphPlanTest, E10_ADispatchWithoutRangesReadsEveryValue) {
  ExpectRefused(AddThenMulThen(TestDispatch(testing::Kernel(*device_, "nothing"), {}, 1)), Fusing(),
                Refusal::kReader, 2);
}

TEST_F(GraphPlanTest, E10_AWriteThatMayLeaveBytesAloneDoesNotEndAValue) {
  auto perhaps = Add(At(a_), At(b_), At(tmp_));
  perhaps.bindings()[2].exact = false;
  ExpectRefused(AddThenMulThen(std::move(perhaps)), Fusing(), Refusal::kReader, 2);
}

TEST_F(GraphPlanTest, E10_RefusesToDropAValueThatIsNotScratch) {
  PlanOptions options = Fusing();
  options.scratch = {};
  ExpectRefused(AddThenMul(), options, Refusal::kOutlives, 1);
  // All but one byte of it is not all of it.
  options.scratch = {View(tmp_, 1, kBytes)};
  ExpectRefused(AddThenMul(), options, Refusal::kOutlives, 1);
}

TEST_F(GraphPlanTest, E10_AValueThatIsOverwrittenLaterNeedNotBeScratch) {
  PlanOptions options = Fusing();
  options.scratch = {};
  const PlanReport report = Report(AddThenMulThen(Add(At(a_), At(b_), At(tmp_))), options);
  EXPECT_EQ(report.fusions, 1u);
  ExpectRefused(AddThenMulThen(Add(At(a_), At(b_), At(tmp_, 4))), options, Refusal::kOutlives, 1);
}

// The next run of the graph would read what this one leaves.
TEST_F(GraphPlanTest, E10_RefusesScratchThatIsReadBeforeItIsWritten) {
  std::vector<TestDispatch> made;
  made.push_back(Add(At(tmp_), At(b_), At(d_)));
  for (TestDispatch& dispatch : AddThenMul()) made.push_back(std::move(dispatch));
  ExpectRefused(made, Fusing(), Refusal::kOutlives, 2);
}

TEST_F(GraphPlanTest, E10_RefusesWhileADispatchBetweenTouchesTheSameBytes) {
  // The fused dispatch would read a_ behind the bump, or write out_ ahead of it.
  for (const BufferView& touched : {At(a_), At(tmp_)}) {
    std::vector<TestDispatch> made;
    made.push_back(Add(At(a_), At(b_), At(tmp_)));
    made.push_back(Bump(*device_, touched));
    made.push_back(Mul(At(tmp_), At(c_), At(out_)));
    const PlanReport report = Report(made, Fusing());
    EXPECT_EQ(report.fusions, 0u);
    if (touched.buffer() == a_) {
      ASSERT_EQ(report.refused.size(), 1u);
      EXPECT_EQ(report.refused[0].refusal, Refusal::kBetween);
      EXPECT_EQ(report.refused[0].other, 1u);
    }
  }
  std::vector<TestDispatch> apart;
  apart.push_back(Add(At(a_), At(b_), At(tmp_)));
  apart.push_back(Bump(*device_, At(d_)));
  apart.push_back(Mul(At(tmp_), At(c_), At(out_)));
  EXPECT_EQ(Report(apart, Fusing()).fusions, 1u);
}

TEST_F(GraphPlanTest, E10_RefusesWhereInputAndOutputWouldMeetInOneDispatch) {
  std::vector<TestDispatch> made;
  made.push_back(Add(At(a_), At(b_), At(tmp_)));
  made.push_back(Mul(At(tmp_), At(c_), At(a_)));
  ExpectRefused(made, Fusing(), Refusal::kOverlap, 1);
  // The second part alone binds them twice already.
  std::vector<TestDispatch> in_place;
  in_place.push_back(Add(At(a_), At(b_), At(tmp_)));
  in_place.push_back(Mul(At(tmp_), At(c_), At(c_)));
  EXPECT_EQ(Report(in_place, Fusing()).fusions, 1u);
}

TEST_F(GraphPlanTest, E10_RefusesWhereAnotherBindingReadsTheValueToo) {
  std::vector<TestDispatch> made;
  made.push_back(Add(At(a_), At(b_), At(tmp_)));
  made.push_back(Mul(At(tmp_), At(tmp_), At(out_)));
  ExpectRefused(made, Fusing(), Refusal::kOverlap, 1);
}

TEST_F(GraphPlanTest, E10_RefusesSizesThatTheRuleDoesNotTake) {
  const uint64_t large = (1 << 20) + 4;
  const Buffer big = testing::MakeBuffer(*device_, large);
  const Buffer tmp = testing::MakeBuffer(*device_, large);
  std::vector<TestDispatch> made;
  made.push_back(Add(big.All(), big.All(), tmp.All()));
  made.push_back(Mul(tmp.All(), big.All(), testing::MakeBuffer(*device_, large).All()));
  PlanOptions options = Fusing();
  options.scratch = {tmp.All()};
  ExpectRefused(made, options, Refusal::kSizes, 1);
}

TEST_F(GraphPlanTest, E10_OnlyTheWholeValueOfTheLastWriterIsFused) {
  // Half of it comes from another dispatch.
  std::vector<TestDispatch> made;
  made.push_back(Add(At(a_), At(b_), At(tmp_)));
  made.push_back(Bump(*device_, View(tmp_, 0, 8)));
  made.push_back(Mul(At(tmp_), At(c_), At(out_)));
  EXPECT_EQ(Report(made, Fusing()).fusions, 0u);
  // A view of it, one element on.
  std::vector<TestDispatch> shifted;
  shifted.push_back(Add(At(a_), At(b_), At(tmp_)));
  shifted.push_back(Mul(At(tmp_, 4), At(c_), At(out_)));
  EXPECT_EQ(Report(shifted, Fusing()).fusions, 0u);
}

TEST_F(GraphPlanTest, E10_PartsFurtherApartThanTheLookAheadAreLeftAlone) {
  std::vector<TestDispatch> made;
  made.push_back(Add(At(a_), At(b_), At(tmp_)));
  for (int i = 0; i < 3; ++i) made.push_back(Bump(*device_, At(d_)));
  made.push_back(Mul(At(tmp_), At(c_), At(out_)));
  PlanOptions options = Fusing();
  options.look_ahead = 5;
  EXPECT_EQ(Report(made, options).fusions, 1u);
  options.look_ahead = 4;
  EXPECT_EQ(Report(made, options).fusions, 0u);
}

// --- Order

std::vector<uint32_t> Order(const GraphPlan& plan) {
  std::vector<uint32_t> order;
  for (const flow::Emitted& step : plan.emitted()) {
    if (!step.barrier) order.push_back(step.parts.front());
  }
  return order;
}

TEST_F(GraphPlanTest, E10_TwoChainsShareTheirBarriers) {
  std::vector<TestDispatch> made;
  for (int i = 0; i < 2; ++i) made.push_back(Bump(*device_, At(a_)));
  for (int i = 0; i < 2; ++i) made.push_back(Bump(*device_, At(b_)));
  const GraphPlan plan = Plan(Capture(made), {});
  EXPECT_EQ(plan.report().barriers_least, 2u);
  EXPECT_EQ(plan.report().barriers, 1u);
  EXPECT_EQ(plan.report().moved, 1u);
  EXPECT_THAT(Order(plan), ElementsAre(0, 2, 1, 3));
  const GraphPlan fixed = Plan(Capture(made), {.reorder = false});
  EXPECT_THAT(Order(fixed), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(fixed.report().barriers, 2u);
}

TEST_F(GraphPlanTest, E10_TheLookAheadBoundsHowFarADispatchMoves) {
  std::vector<TestDispatch> made;
  for (int i = 0; i < 4; ++i) made.push_back(Bump(*device_, At(a_)));
  for (int i = 0; i < 4; ++i) made.push_back(Bump(*device_, At(b_)));
  EXPECT_THAT(Order(Plan(Capture(made), {.look_ahead = 5})), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(Order(Plan(Capture(made), {.look_ahead = 3})), ElementsAre(0, 1, 4, 2, 5, 3, 6, 7));
  EXPECT_THAT(Order(Plan(Capture(made), {.look_ahead = 1})), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(GraphPlanTest, E10_ADispatchWithoutRangesIsNeverMovedOrPassed) {
  std::vector<TestDispatch> made;
  for (int i = 0; i < 2; ++i) made.push_back(Bump(*device_, At(a_)));
  made.push_back(TestDispatch(testing::Kernel(*device_, "nothing"), {}, 1));
  made.push_back(Bump(*device_, At(b_)));
  EXPECT_THAT(Order(Plan(Capture(made), {})), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(Plan(Capture(made), {}).report().barriers, 3u);
}

// Fault 9: the second chain's view begins elsewhere in the same buffer and overlaps.
TEST_F(GraphPlanTest, E10_OverlappingViewsOfOneBufferKeepTheirOrder) {
  std::vector<TestDispatch> made;
  for (int i = 0; i < 2; ++i) made.push_back(Bump(*device_, At(a_)));
  made.push_back(Add(At(a_, kBytes - 4), At(c_), At(b_)));
  EXPECT_THAT(Order(Plan(Capture(made), {})), ElementsAre(0, 1, 2));
  std::vector<TestDispatch> apart;
  for (int i = 0; i < 2; ++i) apart.push_back(Bump(*device_, At(a_)));
  apart.push_back(Add(At(a_, kBytes), At(c_), At(b_)));
  EXPECT_THAT(Order(Plan(Capture(apart), {})), ElementsAre(0, 2, 1));
}

// --- Graphs that a plan takes

class GraphShapeTest : public GraphPlanTest {
 protected:
  // Writes a row of a_ and reads the rows up to it, as a cache is used.
  Graph Token(uint64_t row) {
    std::vector<TestDispatch> made;
    made.push_back(Add(View(b_, 0, 64), View(c_, 0, 64), View(a_, row * 64, 64)));
    TestDispatch read = Add(View(a_, 0, (row + 1) * 64), View(a_, 0, (row + 1) * 64),
                            View(out_, 0, (row + 1) * 64));
    made.push_back(std::move(read));
    return Capture(made);
  }
  Result<GraphPlan> PlanFor(const std::vector<const Graph*>& samples) {
    return GraphPlan::Create(*device_, samples, {});
  }
};

TEST_F(GraphShapeTest, E10_ServesEveryRangeThatItsSamplesSpan) {
  const Graph first = Token(0);
  const Graph last = Token(7);
  const GraphPlan plan = PlanFor({&first, &last}).value();
  for (uint64_t row = 0; row < 8; ++row) {
    EXPECT_THAT(session_->Replay(Token(row), plan), Succeeds());
  }
  EXPECT_EQ(session_->counters().dispatches, 16u);
  EXPECT_EQ(session_->counters().barriers, 8u);
  EXPECT_THAT(session_->Replay(Token(8), plan),
              FailsWith(ErrorCode::kInvalidArgument, "is not what its plan was made for"));
  EXPECT_EQ(session_->counters().dispatches, 16u);
}

TEST_F(GraphShapeTest, E10_RefusesGraphsOfAnotherShape) {
  const GraphPlan plan = Plan(Capture(AddThenMul()), {});
  const auto refused = [](const std::string& part) {
    return FailsWith(ErrorCode::kInvalidArgument, part);
  };
  auto other_kernel = AddThenMul();
  other_kernel[1] = Add(At(tmp_), At(c_), At(out_));
  EXPECT_THAT(session_->Replay(Capture(other_kernel), plan), refused("another kernel"));
  EXPECT_THAT(session_->Replay(Capture({}), plan), refused("0 dispatches"));
  auto moved = AddThenMul();
  moved[1].bindings()[1].view = At(c_, 4);
  EXPECT_THAT(session_->Replay(Capture(moved), plan), refused("Binding 1 of dispatch 1"));
  moved[1].bindings()[1].view = At(d_);
  EXPECT_THAT(session_->Replay(Capture(moved), plan), refused("Binding 1 of dispatch 1"));
  auto other_access = AddThenMul();
  other_access[0].bindings()[0].access = Access::kReadWrite;
  EXPECT_THAT(session_->Replay(Capture(other_access), plan), refused("Binding 0 of dispatch 0"));
  EXPECT_THAT(session_->Replay(Capture(AddThenMul()), GraphPlan()), refused("empty"));
  EXPECT_EQ(session_->counters(), Counters());
  const Graph other = Capture(other_kernel);
  const Graph chain = Capture(AddThenMul());
  EXPECT_THAT(PlanFor({&other, &chain}), refused("another kernel"));
  EXPECT_THAT(PlanFor({}), refused("at least one"));
}

TEST_F(GraphShapeTest, E11_ReleasedBuffersAreRefusedBeforeAnythingIsEncoded) {
  const Graph graph = Capture(AddThenMul());
  const GraphPlan plan = Plan(graph, Fusing());
  ASSERT_THAT(c_.Release(), Succeeds());
  EXPECT_THAT(session_->Replay(graph, plan),
              FailsWith(ErrorCode::kInvalidArgument, "after its release"));
  EXPECT_EQ(session_->counters(), Counters());
}

TEST_F(GraphShapeTest, E5_OtherModesPlaceTheirOwnBarriers) {
  std::vector<TestDispatch> made;
  for (int i = 0; i < 2; ++i) made.push_back(Bump(*device_, At(a_)));
  for (int i = 0; i < 2; ++i) made.push_back(Bump(*device_, At(b_)));
  const Graph graph = Capture(made);
  const GraphPlan plan = Plan(graph, {});
  const auto automatic = device_->CreateSession({.barriers = BarrierMode::kAutomatic}).value();
  ASSERT_THAT(automatic->Replay(graph, plan), Succeeds());
  EXPECT_EQ(automatic->counters().barriers, 1u);
  const auto serial = device_->CreateSession({.barriers = BarrierMode::kSerial}).value();
  ASSERT_THAT(serial->Replay(graph, plan), Succeeds());
  EXPECT_EQ(serial->counters().barriers, 4u);
}

TEST_F(GraphShapeTest, CapturingAgainReplacesWhatIsNotKept) {
  Graph graph = Token(0);
  const Graph last = Token(7);
  const GraphPlan plan = PlanFor({&graph, &last}).value();
  ASSERT_THAT(session_->BeginRecapture(std::move(graph)), Succeeds());
  EXPECT_THAT(session_->BeginCapture(), FailsWith(ErrorCode::kCommandBuffer, ""));
  ASSERT_THAT(session_->Dispatch(Add(View(b_, 0, 64), View(c_, 0, 64), View(a_, 64, 64)).get()),
              Succeeds());
  EXPECT_THAT(session_->Barrier(), Succeeds());
  EXPECT_THAT(session_->EndCapture(), FailsWith(ErrorCode::kCommandBuffer, "1 of the 2"));
  EXPECT_THAT(session_->Dispatch(Mul(View(b_, 0, 64), View(c_, 0, 64), View(a_, 64, 64)).get()),
              FailsWith(ErrorCode::kInvalidArgument, "another kernel"));
  ASSERT_THAT(session_->KeepCaptured(), Succeeds());
  EXPECT_THAT(session_->KeepCaptured(), FailsWith(ErrorCode::kCommandBuffer, "left to keep"));
  EXPECT_THAT(session_->Dispatch(Bump(*device_, At(d_)).get()),
              FailsWith(ErrorCode::kInvalidArgument, "another kernel"));
  graph = session_->EndCapture().value();
  EXPECT_EQ(graph.dispatch_count(), 2u);
  testing::WriteFloats(*device_, View(b_, 0, 64), std::vector<float>(16, 1.5f));
  ASSERT_THAT(session_->Replay(graph, plan), Succeeds());
  ASSERT_THAT(session_->Commit(), Succeeds());
  ASSERT_THAT(session_->Wait(), Succeeds());
  // The row that was captured again, and the read of the first row that was kept.
  EXPECT_EQ(testing::ReadFloats(*device_, View(a_, 64, 4)), std::vector<float>{1.5f});
  EXPECT_EQ(testing::ReadFloats(*device_, View(a_, 0, 4)), std::vector<float>{0.0f});
  EXPECT_THAT(session_->KeepCaptured(), FailsWith(ErrorCode::kCommandBuffer, "left to keep"));
  EXPECT_THAT(session_->BeginRecapture(Graph()), FailsWith(ErrorCode::kInvalidArgument, "empty"));
}

TEST_F(GraphShapeTest, AReplayWithinACaptureIsCapturedAsPlanned) {
  const Graph graph = Capture(AddThenMul());
  const GraphPlan plan = Plan(graph, Fusing());
  ASSERT_THAT(session_->BeginCapture(), Succeeds());
  ASSERT_THAT(session_->Replay(graph, plan), Succeeds());
  EXPECT_EQ(session_->EndCapture().value().dispatch_count(), 1u);
}

}  // namespace
}  // namespace assay::gpu
