#include "gpu/graph_planner.h"

#include <algorithm>

#include "gpu/graph_fusion.h"

namespace assay::gpu {
namespace {

// Units with what each touches.
struct Stream {
  std::vector<PlannedUnit> units;
  std::vector<std::vector<PlannedTouch>> touches;

  Stream(const PlannerInput& input, std::vector<PlannedUnit> from) : units(std::move(from)) {
    touches.reserve(units.size());
    for (const PlannedUnit& unit : units) touches.push_back(TouchesOf(input, unit));
  }
};

// Lists the stream's units by the groups between barriers. Each group takes, in order, every unit
// that conflicts with none of the group and with none that was passed over; `reach` units from the
// oldest one left are looked at.
//
// With any reach this needs no more barriers than the stream in its own order: by induction the
// first g groups hold at least what the first g groups of that order hold, since what comes next in
// order is looked at before anything that could stand in its way.
std::vector<std::vector<uint32_t>> Groups(const Stream& stream, uint32_t reach) {
  const auto count = static_cast<uint32_t>(stream.units.size());
  std::vector<std::vector<uint32_t>> groups;
  std::vector<bool> emitted(count, false);
  uint32_t oldest = 0;
  while (oldest < count) {
    std::vector<uint32_t>& group = groups.emplace_back();
    std::vector<uint32_t> passed;
    for (uint32_t i = oldest; i < count && i < uint64_t{oldest} + reach; ++i) {
      if (emitted[i]) continue;
      const auto conflicts = [&](uint32_t other) {
        return TouchesConflict(stream.touches[other], stream.touches[i]);
      };
      if (std::ranges::any_of(passed, conflicts) || std::ranges::any_of(group, conflicts)) {
        passed.push_back(i);
        continue;
      }
      group.push_back(i);
      emitted[i] = true;
      while (oldest < count && emitted[oldest]) ++oldest;
    }
  }
  return groups;
}

// A reach of one unit keeps the order.
std::vector<std::vector<uint32_t>> InOrder(const Stream& stream) { return Groups(stream, 1); }

uint32_t Barriers(const std::vector<std::vector<uint32_t>>& groups) {
  return groups.empty() ? 0 : static_cast<uint32_t>(groups.size() - 1);
}

}  // namespace

std::vector<PlannedTouch> TouchesOf(const PlannerInput& input, const PlannedUnit& unit) {
  if (unit.rule == nullptr) return input.dispatches[unit.parts.front()].touches;
  std::vector<PlannedTouch> touches;
  for (const FusedBinding& fused : unit.rule->bindings) {
    PlannedTouch touch =
        input.dispatches[unit.parts[fused.place.part]].touches[fused.place.binding];
    touch.access = fused.access;
    touches.push_back(touch);
  }
  return touches;
}

std::vector<PlannedUnit> PlanUnits(const PlannerInput& input, PlanReport& report) {
  std::vector<PlannedUnit> as_recorded;
  for (uint32_t i = 0; i < input.dispatches.size(); ++i)
    as_recorded.push_back({{i}, nullptr, false});
  const Stream recorded(input, std::move(as_recorded));
  const auto recorded_groups = InOrder(recorded);
  report.dispatches_recorded = static_cast<uint32_t>(input.dispatches.size());
  report.barriers_least = Barriers(recorded_groups);

  const uint32_t reach = input.options->reorder ? std::max(1u, input.options->look_ahead) : 1;
  Stream stream(input, FuseUnits(input, report.refused));
  auto groups = Groups(stream, reach);
  // A fusion brings its parts together at the place of the last one, which can lengthen a chain.
  if (Barriers(groups) > report.barriers_least) {
    stream = recorded;
    groups = Groups(stream, reach);
  }

  report.dispatches = static_cast<uint32_t>(stream.units.size());
  report.barriers = Barriers(groups);
  std::vector<PlannedUnit> units;
  std::vector<uint32_t> order;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t k = 0; k < groups[g].size(); ++k) {
      const uint32_t from = groups[g][k];
      order.push_back(from);
      units.push_back(std::move(stream.units[from]));
      units.back().barrier_before = g > 0 && k == 0;
      if (units.back().rule != nullptr) ++report.fusions;
    }
  }
  uint32_t earliest_after = UINT32_MAX;
  for (size_t i = order.size(); i-- > 0;) {
    if (order[i] > earliest_after) ++report.moved;
    earliest_after = std::min(earliest_after, order[i]);
  }
  return units;
}

}  // namespace assay::gpu
