// GroupPlanner: where barriers would close the pairs of one group (H5).
#ifndef ASSAY_HAZARD_GROUP_PLANNER_H_
#define ASSAY_HAZARD_GROUP_PLANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace assay::hazard {

// Dispatches of the group are counted from 0. One thread.
class GroupPlanner final {
 public:
  // A barrier ahead of the dispatch `before`, and the pairs that it alone would close.
  struct Place {
    uint32_t before = 0;
    uint64_t closes_certain = 0;
    uint64_t closes_possible = 0;
    bool ClosesMoreThan(const Place& other) const {
      return closes_certain != other.closes_certain ? closes_certain > other.closes_certain
                                                    : closes_possible > other.closes_possible;
    }
  };
  struct Plan {
    std::optional<Place> best;
    std::vector<Place> least;  // The fewest places that close all pairs.
  };

  // `first` < `second`; `second` must not fall from one call to the next.
  void AddPair(uint32_t first, uint32_t second, bool certain);
  // The plan for the pairs since the last call, which are then forgotten.
  Plan Finish();

 private:
  struct Delta {
    int64_t certain = 0;
    int64_t possible = 0;
  };
  // How the number of pairs open at a place differs from the place before.
  std::vector<Delta> deltas_;
  std::vector<uint32_t> stabs_;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_GROUP_PLANNER_H_
