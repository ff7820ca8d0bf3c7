#include "cli/perturbation.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "gpu/schedule/group_conflicts.h"
#include "gpu/schedule/scheduled_backend.h"

namespace assay::cli {
namespace {

gpu::GroupPlace PlaceOf(const gpu::Group& group) { return {group.command_buffer, group.number}; }

// What `culprit` stands for in `group`, which is its own.
CulpritPair Describe(const gpu::Culprit& culprit, const gpu::Group& group) {
  const auto side = [&](uint32_t index) {
    return PairSide{.dispatch = group.first_dispatch + index,
                    .kernel = group.dispatches[index].kernel->info().name};
  };
  CulpritPair pair{.culprit = culprit,
                   .first = side(culprit.first),
                   .second = side(culprit.second),
                   .shared = {}};
  if (culprit.first == culprit.second) return pair;
  const std::array both = {group.dispatches[culprit.first], group.dispatches[culprit.second]};
  gpu::ForEachConflict(both, [&](const gpu::GroupConflict& conflict) {
    const gpu::BackendBinding& first = both[0].bindings[conflict.first_binding];
    const gpu::BackendBinding& second = both[1].bindings[conflict.second_binding];
    pair.shared.push_back({.label = std::string(gpu::InfoOf(*first.buffer).label),
                           .range = conflict.range,
                           .first = first.access,
                           .second = second.access,
                           .certain = conflict.certain});
    return true;
  });
  std::ranges::sort(pair.shared, {}, [](const SharedBytes& bytes) {
    return std::tuple(bytes.label, bytes.range.begin, bytes.range.end, bytes.first, bytes.second);
  });
  return pair;
}

Result<std::optional<CulpritPair>> FindPair(DecodeRig& rig, DecodePlan plan,
                                            const Baseline& baseline,
                                            const std::vector<gpu::ArrangedGroup>& groups,
                                            const StepDifference& difference) {
  plan.steps = difference.step;
  const auto differs = [&](const std::vector<gpu::ArrangedGroup>& arranged) -> Result<bool> {
    std::map<gpu::GroupPlace, const gpu::Arrangement*> by_place;
    for (const gpu::ArrangedGroup& group : arranged) by_place[group.place] = &group.arrangement;
    ASSAY_ASSIGN_OR_RETURN(const auto found, rig.Run(plan, baseline, [&](const gpu::Group& group) {
      const auto chosen = by_place.find(PlaceOf(group));
      return chosen == by_place.end() ? gpu::RecordedArrangement(group.dispatches.size())
                                      : *chosen->second;
    }));
    return found.has_value();
  };
  ASSAY_ASSIGN_OR_RETURN(const std::optional<gpu::Culprit> culprit,
                         gpu::FindCulprit(groups, differs));
  std::optional<CulpritPair> pair;
  if (!culprit) return pair;
  // Once more, for what the culprit's numbers stand for.
  ASSAY_TRY(rig.Run(plan, baseline, [&](const gpu::Group& group) {
    if (PlaceOf(group) == culprit->place) pair = Describe(*culprit, group);
    return gpu::RecordedArrangement(group.dispatches.size());
  }));
  return pair;
}

}  // namespace

Result<ScheduleOutcome> TrySchedule(DecodeRig& rig, const DecodePlan& plan,
                                    const Baseline& baseline, const gpu::Schedule& schedule,
                                    bool find_pair) {
  ScheduleOutcome outcome{.schedule = schedule};
  std::vector<gpu::ArrangedGroup> arranged;
  ASSAY_ASSIGN_OR_RETURN(outcome.difference, rig.Run(plan, baseline, [&](const gpu::Group& group) {
    gpu::Arrangement arrangement = gpu::Arrange(schedule, group);
    if (arrangement != gpu::RecordedArrangement(group.dispatches.size())) {
      arranged.push_back({PlaceOf(group), arrangement});
    }
    return arrangement;
  }));
  outcome.rearranged = arranged.size();
  if (!outcome.difference || !find_pair) return outcome;
  ASSAY_ASSIGN_OR_RETURN(outcome.pair,
                         FindPair(rig, plan, baseline, arranged, *outcome.difference));
  return outcome;
}

}  // namespace assay::cli
