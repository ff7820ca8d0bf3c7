#include "hazard/group_planner.h"

#include <cstddef>
#include <utility>

namespace assay::hazard {

void GroupPlanner::AddPair(uint32_t first, uint32_t second, bool certain) {
  // A barrier ahead of first + 1, ..., second closes the pair.
  const size_t size = static_cast<size_t>(second) + 2;
  if (deltas_.size() < size) deltas_.resize(size);
  auto add = [certain](Delta& delta, int64_t count) {
    (certain ? delta.certain : delta.possible) += count;
  };
  add(deltas_[first + 1], 1);
  add(deltas_[size_t{second} + 1], -1);
  // Pairs come by their right ends, so the latest place that closes the first open one is best.
  if (stabs_.empty() || stabs_.back() <= first) stabs_.push_back(second);
}

GroupPlanner::Plan GroupPlanner::Finish() {
  Plan plan;
  if (deltas_.empty()) return plan;
  Place place;
  size_t next_stab = 0;
  std::optional<Place> best;
  bool best_is_running = false;
  for (size_t i = 0; i < deltas_.size(); ++i) {
    place.before = static_cast<uint32_t>(i);
    place.closes_certain += static_cast<uint64_t>(deltas_[i].certain);
    place.closes_possible += static_cast<uint64_t>(deltas_[i].possible);
    if (next_stab < stabs_.size() && stabs_[next_stab] == i) {
      plan.least.push_back(place);
      ++next_stab;
    }
    // Among equal places side by side the last one is named: close to the dispatch that suffers.
    if (!best || place.ClosesMoreThan(*best)) {
      best = place;
      best_is_running = true;
    } else if (best_is_running && !best->ClosesMoreThan(place)) {
      best->before = place.before;
    } else {
      best_is_running = false;
    }
  }
  plan.best = best;
  deltas_.clear();
  stabs_.clear();
  return plan;
}

}  // namespace assay::hazard
