// What a plan holds, and what a session keeps to replay with plans.
#ifndef ASSAY_GPU_GRAPH_PLAN_STATE_H_
#define ASSAY_GPU_GRAPH_PLAN_STATE_H_

#include <cstdint>
#include <vector>

#include "assay/gpu_graph.h"

#include "gpu/graph_planner.h"
#include "gpu/graph_state.h"

namespace assay::gpu {

// A dispatch to emit.
struct PlannedStep {
  PlannedUnit unit;
  KernelId kernel;
  size_t fused_index = 0;  // Among the steps with a rule.
};

// The fused dispatches of a plan, made anew by each replay in the same memory.
struct FusedDispatches {
  struct Entry {
    FusedLaunch launch;
    std::vector<Binding> bindings;
    Dispatch dispatch;  // Borrows from the two above.
  };
  std::vector<Entry> entries;  // One for each fused step; never resized once one is made.
  std::vector<Dispatch> parts;

  // Makes the fused dispatch of `step` from the parts in `graph`. Error kInvalidArgument when the
  // rule does not take the parts' sizes.
  Result<const Dispatch*> Make(const Graph::State& graph, const PlannedStep& step);
};

struct GraphPlan::State {
  // Of a recorded dispatch, which every graph that is replayed must have.
  struct ExpectedDispatch {
    KernelId kernel;
    size_t first_binding = 0;
    size_t binding_count = 0;
  };
  struct ExpectedBinding {
    Buffer buffer;
    ByteRange range;
    Access access = Access::kRead;
    bool exact = true;
    bool fixed = true;  // Else any range within `range`.
  };
  const DeviceState* device = nullptr;  // Compared, never followed.
  std::vector<ExpectedDispatch> dispatches;
  std::vector<ExpectedBinding> bindings;
  std::vector<PlannedStep> steps;
  PlanReport report;
  std::vector<flow::Recorded> recorded;
  std::vector<flow::Emitted> emitted;
  std::vector<flow::Dead> dead;
  FusedDispatches fused;  // Written by each replay.

  // Whether the plan holds for `graph`: kInvalidArgument where not, with dispatch and binding.
  Status Check(const Graph::State& graph) const;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_PLAN_STATE_H_
