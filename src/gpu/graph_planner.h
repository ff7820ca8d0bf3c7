// Finds fusions and an order for a recorded run of dispatches. Knows names of kernels, bindings and
// ranges only; whoever uses a plan has it checked by flow::CheckOrder, with which this shares no
// code.
#ifndef ASSAY_GPU_GRAPH_PLANNER_H_
#define ASSAY_GPU_GRAPH_PLANNER_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/gpu_graph.h"

namespace assay::gpu {

// A binding as the planner sees it.
struct PlannedTouch {
  uint64_t allocation = 0;
  ByteRange range;  // The widest that a graph may bind.
  Access access = Access::kRead;
  bool exact = true;  // Every graph touches all of `range`.
  bool fixed = true;  // Every graph binds `range` itself.
};

struct PlannedDispatch {
  std::string_view kernel;
  std::vector<PlannedTouch> touches;  // In the order of the bindings; none: everything.
  Dispatch sample;                    // For the rules' sizes.
};

// A dispatch to emit: one recorded one, or several that `rule` fuses.
struct PlannedUnit {
  std::vector<uint32_t> parts;  // In the order of the rule, or the one recorded dispatch.
  const FusionRule* rule = nullptr;
  bool barrier_before = false;
};

struct PlannerInput {
  std::span<const PlannedDispatch> dispatches;
  std::span<const PlannedTouch> scratch;
  const PlanOptions* options = nullptr;
};

// What the fused dispatch of `unit` touches, or the recorded one of a unit without a rule.
std::vector<PlannedTouch> TouchesOf(const PlannerInput& input, const PlannedUnit& unit);

// Units in the order to emit. Fills the report but for barriers_recorded.
std::vector<PlannedUnit> PlanUnits(const PlannerInput& input, PlanReport& report);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_PLANNER_H_
