// The session's captures and replays.
#include <utility>

#include <fmt/format.h>

#include "gpu/session_state.h"

namespace assay::gpu {

Status SessionState::BeginCapture() {
  ASSAY_TRY(CheckUsable());
  if (capture_ != nullptr) {
    return Fail(ErrorCode::kCommandBuffer, "", "BeginCapture is called during a capture.");
  }
  capture_ = std::make_unique<Graph::State>();
  capture_->device = device_.get();
  return {};
}

Status SessionState::BeginRecapture(Graph&& graph) {
  ASSAY_TRY(CheckReplay(graph));
  if (capture_ != nullptr) {
    return Fail(ErrorCode::kCommandBuffer, "", "BeginRecapture is called during a capture.");
  }
  capture_ = std::move(graph.state_);
  recaptured_ = 0;
  return {};
}

Status SessionState::KeepCaptured() {
  ASSAY_TRY(CheckUsable());
  if (!recaptured_ || *recaptured_ >= capture_->dispatches.size()) {
    return Fail(ErrorCode::kCommandBuffer, "",
                "KeepCaptured is called where no captured dispatch is left to keep.");
  }
  ++*recaptured_;
  return {};
}

Status SessionState::Capture(const gpu::Dispatch& dispatch) {
  if (!recaptured_) {
    capture_->Add(dispatch);
    return {};
  }
  if (*recaptured_ >= capture_->dispatches.size() || !capture_->Replace(*recaptured_, dispatch)) {
    return Fail(ErrorCode::kInvalidArgument, "",
                fmt::format("Dispatch {} of a graph that is captured again is of another kernel "
                            "than before.",
                            *recaptured_));
  }
  ++*recaptured_;
  return {};
}

Result<Graph> SessionState::EndCapture() {
  ASSAY_TRY(CheckUsable());
  if (capture_ == nullptr) {
    return Fail(ErrorCode::kCommandBuffer, "", "EndCapture is called without BeginCapture.");
  }
  if (recaptured_ && *recaptured_ != capture_->dispatches.size()) {
    return Fail(ErrorCode::kCommandBuffer, "",
                fmt::format("EndCapture is called after {} of the {} dispatches of a graph that "
                            "is captured again.",
                            *recaptured_, capture_->dispatches.size()));
  }
  recaptured_.reset();
  Graph graph;
  graph.state_ = std::move(capture_);
  return graph;
}

Status SessionState::CheckReplay(const Graph& graph) const {
  ASSAY_TRY(CheckUsable());
  if (graph.state_ == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "", "The graph to replay is empty.");
  }
  if (graph.state_->device != device_.get()) {
    return Fail(ErrorCode::kInvalidArgument, "",
                "The graph to replay was captured on another device.");
  }
  return {};
}

Status SessionState::Replay(const Graph& graph) {
  ASSAY_TRY(CheckReplay(graph));
  const Graph::State& state = *graph.state_;
  // All of it is checked first, so that a refused replay leaves the command buffer as it was.
  for (const Graph::State::Step& step : state.steps) {
    if (step.is_barrier()) continue;
    const KernelEntry* kernel = nullptr;
    ASSAY_TRY_WHILE(Validate(state.DispatchOf(step), &kernel), "replaying a graph");
  }
  for (const Graph::State::Step& step : state.steps) {
    if (step.is_barrier()) {
      ASSAY_TRY(Barrier());
    } else {
      ASSAY_TRY(Dispatch(state.DispatchOf(step)));
    }
  }
  return {};
}

Status SessionState::Replay(const Graph& graph, const GraphPlan& plan) {
  ASSAY_TRY(CheckReplay(graph));
  if (plan.state_ == nullptr || plan.state_->device != device_.get()) {
    return Fail(ErrorCode::kInvalidArgument, "",
                "The plan of a replay is empty or was made for another device.");
  }
  const Graph::State& recorded = *graph.state_;
  GraphPlan::State& state = *plan.state_;
  ASSAY_TRY_WHILE(state.Check(recorded), "replaying a graph");
  // What was captured was valid then; only a release has come between.
  for (const Binding& binding : recorded.bindings) {
    const Allocation& allocation = *binding.view.buffer().state_->allocation();
    if (allocation.released()) {
      return Fail(ReleasedError(allocation.desc()).While("replaying a graph"));
    }
  }
  for (const PlannedStep& step : state.steps) {
    if (step.unit.rule == nullptr) continue;
    const KernelEntry* kernel = nullptr;
    ASSAY_ASSIGN_OR_RETURN(const gpu::Dispatch* const fused, state.fused.Make(recorded, step));
    ASSAY_TRY_WHILE(Validate(*fused, &kernel), "replaying a graph");
  }
  // The other modes place their own barriers.
  const bool place = options_.barriers == BarrierMode::kManual || capture_ != nullptr;
  for (const PlannedStep& step : state.steps) {
    if (step.unit.barrier_before && place) ASSAY_TRY(Barrier());
    const gpu::Dispatch dispatch = step.unit.rule == nullptr
                                       ? recorded.DispatchAt(step.unit.parts.front())
                                       : state.fused.entries[step.fused_index].dispatch;
    if (capture_ != nullptr) {
      ASSAY_TRY(Capture(dispatch));
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(const KernelEntry* const kernel, FindKernel(step.kernel));
    ASSAY_TRY(Encode(dispatch, *kernel));
  }
  return {};
}

}  // namespace assay::gpu
