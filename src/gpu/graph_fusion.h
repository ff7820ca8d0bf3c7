// Which recorded dispatches a rule may replace.
#ifndef ASSAY_GPU_GRAPH_FUSION_H_
#define ASSAY_GPU_GRAPH_FUSION_H_

#include <vector>

#include "gpu/graph_planner.h"

namespace assay::gpu {

// True when the two must be ordered: they share bytes and one of them writes, or one of them
// touches everything.
bool TouchesConflict(std::span<const PlannedTouch> a, std::span<const PlannedTouch> b);

// The input's dispatches, those that a rule may replace as one unit at the place of its last part.
// Matches that had to be left alone go into `refused`.
std::vector<PlannedUnit> FuseUnits(const PlannerInput& input, std::vector<RefusedFusion>& refused);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_FUSION_H_
