#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "gpu/device_state.h"
#include "gpu/graph_plan_state.h"

namespace assay::gpu {
namespace {

Error Mismatch(std::string message) {
  return {ErrorCode::kInvalidArgument, "", std::move(message)};
}

// Numbers allocations by first appearance, so that findings read the same in every run.
class AllocationNumbers {
 public:
  uint64_t Of(const Allocation* allocation) {
    return numbers_.try_emplace(allocation, numbers_.size()).first->second;
  }

 private:
  std::unordered_map<const Allocation*, uint64_t> numbers_;
};

flow::Touch ToFlow(const PlannedTouch& touch) {
  return {touch.allocation, touch.range, touch.access, touch.exact && touch.fixed};
}
std::vector<flow::Touch> ToFlow(const std::vector<PlannedTouch>& touches) {
  std::vector<flow::Touch> converted;
  converted.reserve(touches.size());
  for (const PlannedTouch& touch : touches) converted.push_back(ToFlow(touch));
  return converted;
}

}  // namespace

GraphPlan::GraphPlan() = default;
GraphPlan::~GraphPlan() = default;
GraphPlan::GraphPlan(GraphPlan&&) noexcept = default;
GraphPlan& GraphPlan::operator=(GraphPlan&&) noexcept = default;

const PlanReport& GraphPlan::report() const { return state_->report; }
const std::vector<flow::Recorded>& GraphPlan::recorded() const { return state_->recorded; }
const std::vector<flow::Emitted>& GraphPlan::emitted() const { return state_->emitted; }
const std::vector<flow::Dead>& GraphPlan::dead() const { return state_->dead; }

std::string_view RefusalName(Refusal refusal) {
  switch (refusal) {
    case Refusal::kReader:
      return "reader";
    case Refusal::kOutlives:
      return "outlives";
    case Refusal::kBetween:
      return "between";
    case Refusal::kOverlap:
      return "overlap";
    case Refusal::kSizes:
      return "sizes";
  }
  return "";
}

Status GraphPlan::State::Check(const Graph::State& graph) const {
  if (graph.dispatches.size() != dispatches.size()) {
    return Fail(Mismatch(fmt::format("The graph has {} dispatches where its plan has {}.",
                                     graph.dispatches.size(), dispatches.size())));
  }
  for (uint32_t i = 0; i < dispatches.size(); ++i) {
    const Graph::State::Step& step = graph.steps[graph.dispatches[i]];
    const ExpectedDispatch& expected = dispatches[i];
    if (step.kernel != expected.kernel || step.binding_count != expected.binding_count) {
      return Fail(Mismatch(
          fmt::format("Dispatch {} of the graph is of another kernel than in its plan.", i)));
    }
    for (size_t b = 0; b < expected.binding_count; ++b) {
      const Binding& binding = graph.bindings[step.first_binding + b];
      const ExpectedBinding& wanted = bindings[expected.first_binding + b];
      const ByteRange range = binding.view.range();
      const bool same_bytes = wanted.fixed ? range == wanted.range : wanted.range.Contains(range);
      if (same_bytes && binding.view.buffer() == wanted.buffer && binding.access == wanted.access &&
          binding.exact == wanted.exact) {
        continue;
      }
      return Fail(Mismatch(fmt::format(
          "Binding {} of dispatch {} of the graph, bytes [{}, {}) of buffer \"{}\" "
          "({}), is not what its plan was made for: {} [{}, {}) of buffer \"{}\" ({}).",
          b, i, range.begin, range.end, binding.view.buffer().label(), AccessName(binding.access),
          wanted.fixed ? "bytes" : "bytes within", wanted.range.begin, wanted.range.end,
          wanted.buffer.label(), AccessName(wanted.access))));
    }
  }
  return {};
}

Result<const Dispatch*> FusedDispatches::Make(const Graph::State& graph, const PlannedStep& step) {
  Entry& entry = entries[step.fused_index];
  parts.clear();
  for (const uint32_t part : step.unit.parts) parts.push_back(graph.DispatchAt(part));
  const FusionRule& rule = *step.unit.rule;
  if (!rule.launch(parts, entry.launch)) {
    return Fail(ErrorCode::kInvalidArgument, std::string(rule.kernel),
                fmt::format("Kernel \"{}\" does not take the sizes of dispatches {} to {}, which "
                            "its plan fuses.",
                            rule.kernel, step.unit.parts.front(), step.unit.parts.back()));
  }
  entry.bindings.resize(rule.bindings.size());
  for (size_t b = 0; b < rule.bindings.size(); ++b) {
    const FusedBinding& fused = rule.bindings[b];
    entry.bindings[b] = parts[fused.place.part].bindings[fused.place.binding];
    entry.bindings[b].access = fused.access;
  }
  entry.dispatch = {
      .kernel = step.kernel,
      .bindings = entry.bindings,
      .constants = std::span(entry.launch.constants).first(entry.launch.constant_bytes),
      .grid = entry.launch.grid,
      .shared_bytes = entry.launch.shared_bytes};
  return &entry.dispatch;
}

Result<GraphPlan> GraphPlan::Create(Device& device, std::span<const Graph* const> samples,
                                    const PlanOptions& options) {
  DeviceState& owner = *device.state_;
  for (const Graph* sample : samples) {
    if (sample->state_ == nullptr || sample->state_->device != &owner) {
      return Fail(Mismatch("A sample graph of a plan is empty or was captured on another device."));
    }
  }
  if (samples.empty()) return Fail(Mismatch("A plan needs at least one sample graph."));
  const Graph::State& first = *samples.front()->state_;
  GraphPlan plan;
  plan.state_ = std::make_unique<State>();
  State& state = *plan.state_;
  state.device = &owner;

  // What the samples have in common and what they span.
  for (uint32_t i = 0; i < first.dispatches.size(); ++i) {
    const Dispatch dispatch = first.DispatchAt(i);
    state.dispatches.push_back({dispatch.kernel, state.bindings.size(), dispatch.bindings.size()});
    for (const Binding& binding : dispatch.bindings) {
      state.bindings.push_back(
          {binding.view.buffer(), binding.view.range(), binding.access, binding.exact, true});
    }
  }
  for (const Graph* sample : samples) {
    const Graph::State& other = *sample->state_;
    for (size_t b = 0; b < std::min(other.bindings.size(), state.bindings.size()); ++b) {
      const ByteRange range = other.bindings[b].view.range();
      State::ExpectedBinding& wanted = state.bindings[b];
      if (range == wanted.range) continue;
      wanted.fixed = false;
      wanted.range = {std::min(range.begin, wanted.range.begin),
                      std::max(range.end, wanted.range.end)};
    }
  }
  for (const Graph* sample : samples) {
    ASSAY_TRY_WHILE(state.Check(*sample->state_), "comparing the sample graphs of a plan");
  }

  AllocationNumbers numbers;
  std::vector<PlannedDispatch> dispatches;
  for (uint32_t i = 0; i < state.dispatches.size(); ++i) {
    const State::ExpectedDispatch& expected = state.dispatches[i];
    const KernelEntry* kernel = owner.FindKernel(expected.kernel);
    PlannedDispatch planned{kernel->desc.name, {}, first.DispatchAt(i)};
    for (size_t b = 0; b < expected.binding_count; ++b) {
      const State::ExpectedBinding& wanted = state.bindings[expected.first_binding + b];
      planned.touches.push_back({numbers.Of(wanted.buffer.state_->allocation().get()), wanted.range,
                                 wanted.access, wanted.exact, wanted.fixed});
    }
    state.recorded.push_back(ToFlow(planned.touches));
    dispatches.push_back(std::move(planned));
  }
  std::vector<PlannedTouch> scratch;
  for (const BufferView& view : options.scratch) {
    if (!view) continue;
    scratch.push_back({numbers.Of(view.buffer().state_->allocation().get()), view.range()});
    state.dead.push_back({scratch.back().allocation, view.range()});
  }

  const PlannerInput input{dispatches, scratch, &options};
  size_t fused = 0;
  for (PlannedUnit& unit : PlanUnits(input, state.report)) {
    if (unit.barrier_before) state.emitted.push_back({true, {}, {}});
    state.emitted.push_back({false, unit.parts, ToFlow(TouchesOf(input, unit))});
    PlannedStep step;
    if (unit.rule == nullptr) {
      step.kernel = state.dispatches[unit.parts.front()].kernel;
    } else {
      ASSAY_ASSIGN_OR_RETURN(step.kernel, owner.GetKernel(unit.rule->kernel));
      step.fused_index = fused++;
    }
    step.unit = std::move(unit);
    state.steps.push_back(std::move(step));
  }
  state.fused.entries.resize(fused);
  uint32_t groups = 0;
  bool open = false;
  for (const Graph::State::Step& step : first.steps) {
    if (!step.is_barrier() && !open) ++groups;
    open = !step.is_barrier();
  }
  state.report.barriers_recorded = groups == 0 ? 0 : groups - 1;

  const auto findings = flow::CheckOrder(state.recorded, state.emitted, state.dead);
  if (!findings.empty()) {
    return Fail(ErrorCode::kInternal, "",
                fmt::format("The plan of {} dispatches would change what they compute in {} "
                            "places; the first: {}.",
                            dispatches.size(), findings.size(), flow::Describe(findings.front())));
  }
  return plan;
}

}  // namespace assay::gpu
