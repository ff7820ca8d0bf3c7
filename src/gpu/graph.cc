#include <algorithm>

#include "assay/gpu_graph.h"

#include "gpu/graph_state.h"

namespace assay::gpu {

Graph::Graph() = default;
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

size_t Graph::dispatch_count() const { return state_ == nullptr ? 0 : state_->dispatches.size(); }

void Graph::State::Add(const Dispatch& dispatch) {
  Step step;
  step.kernel = dispatch.kernel;
  step.grid = dispatch.grid;
  step.shared_bytes = dispatch.shared_bytes;
  step.first_binding = bindings.size();
  step.binding_count = dispatch.bindings.size();
  step.first_constant = constants.size();
  step.constant_bytes = dispatch.constants.size();
  bindings.insert(bindings.end(), dispatch.bindings.begin(), dispatch.bindings.end());
  constants.insert(constants.end(), dispatch.constants.begin(), dispatch.constants.end());
  dispatches.push_back(static_cast<uint32_t>(steps.size()));
  steps.push_back(step);
}

bool Graph::State::Replace(uint32_t index, const Dispatch& dispatch) {
  Step& step = steps[dispatches[index]];
  // A kernel has one number of bindings and one size of constants.
  if (step.kernel != dispatch.kernel) return false;
  step.grid = dispatch.grid;
  step.shared_bytes = dispatch.shared_bytes;
  // Assigning a handle of the same buffer costs no reference counting.
  std::ranges::copy(dispatch.bindings,
                    bindings.begin() + static_cast<ptrdiff_t>(step.first_binding));
  std::ranges::copy(dispatch.constants,
                    constants.begin() + static_cast<ptrdiff_t>(step.first_constant));
  return true;
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
