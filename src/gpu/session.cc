#include <utility>

#include "assay/gpu.h"

#include "gpu/session_state.h"

namespace assay::gpu {

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::~Session() = default;

Status Session::Dispatch(const gpu::Dispatch& dispatch) { return state_->Dispatch(dispatch); }
Status Session::Barrier() { return state_->Barrier(); }
Status Session::Commit() { return state_->Commit(); }
Status Session::Wait() { return state_->Wait(); }
void Session::Reset() { state_->Reset(); }
Status Session::BeginCapture() { return state_->BeginCapture(); }
Status Session::BeginRecapture(Graph&& graph) { return state_->BeginRecapture(std::move(graph)); }
Status Session::KeepCaptured() { return state_->KeepCaptured(); }
Result<Graph> Session::EndCapture() { return state_->EndCapture(); }
Status Session::Replay(const Graph& graph) { return state_->Replay(graph); }
Status Session::Replay(const Graph& graph, const GraphPlan& plan) {
  return state_->Replay(graph, plan);
}
const Counters& Session::counters() const { return state_->counters(); }
BarrierMode Session::barrier_mode() const { return state_->barrier_mode(); }

}  // namespace assay::gpu
