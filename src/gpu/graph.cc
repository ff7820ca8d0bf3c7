#include "assay/gpu_graph.h"

#include "gpu/graph_state.h"

namespace assay::gpu {

Graph::Graph() = default;
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

size_t Graph::dispatch_count() const { return state_ == nullptr ? 0 : state_->dispatches.size(); }

void Graph::State::Restart() {
  steps.clear();
  dispatches.clear();
  binding_count = 0;
  constants.clear();
}

void Graph::State::Add(const Dispatch& dispatch) {
  Step step;
  step.kernel = dispatch.kernel;
  step.grid = dispatch.grid;
  step.shared_bytes = dispatch.shared_bytes;
  step.first_binding = binding_count;
  step.binding_count = dispatch.bindings.size();
  step.first_constant = constants.size();
  step.constant_bytes = dispatch.constants.size();
  for (const Binding& binding : dispatch.bindings) {
    if (binding_count == bindings.size()) {
      bindings.push_back(binding);
    } else {
      bindings[binding_count] = binding;
    }
    ++binding_count;
  }
  constants.insert(constants.end(), dispatch.constants.begin(), dispatch.constants.end());
  dispatches.push_back(static_cast<uint32_t>(steps.size()));
  steps.push_back(step);
}

Dispatch Graph::State::DispatchOf(const Step& step) const {
  Dispatch dispatch;
  dispatch.kernel = step.kernel;
  dispatch.bindings = std::span(bindings).subspan(step.first_binding, step.binding_count);
  dispatch.constants = std::span(constants).subspan(step.first_constant, step.constant_bytes);
  dispatch.grid = step.grid;
  dispatch.shared_bytes = step.shared_bytes;
  return dispatch;
}

}  // namespace assay::gpu
