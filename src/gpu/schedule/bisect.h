// Bisect: from a run whose results differ under a schedule to the two dispatches that are to blame.
#ifndef ASSAY_GPU_SCHEDULE_BISECT_H_
#define ASSAY_GPU_SCHEDULE_BISECT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "assay/base.h"

#include "gpu/schedule/arranger.h"

namespace assay::gpu {

// Names a group of a run: the numbers of struct Group.
struct GroupPlace {
  uint64_t command_buffer = 0;
  uint32_t number = 0;
  bool operator==(const GroupPlace&) const = default;
  bool operator<(const GroupPlace& other) const {
    return std::tie(command_buffer, number) < std::tie(other.command_buffer, other.number);
  }
};

struct ArrangedGroup {
  GroupPlace place;
  Arrangement arrangement;
};

// Whether the program's results differ from those of the recorded order when these groups are
// arranged so, all others run in recorded order, and no two dispatches at the same time. The same
// answer to the same question.
using DiffersWhen = std::function<Result<bool>(const std::vector<ArrangedGroup>& groups)>;

// Two dispatches, counted from 0 in their group in recorded order: with everything else of some run
// as it was, the results follow the order of these two. Equal when the workgroups of one dispatch
// are to blame.
struct Culprit {
  GroupPlace place;
  uint32_t first = 0;
  uint32_t second = 0;
  // The recorded order with only this pair changed differs: the two exchanged if they are
  // neighbours, else one moved past the other, or their workgroups mixed.
  bool alone = false;
  // Workgroups are mixed, not dispatches exchanged.
  bool mixed = false;
  uint64_t runs = 0;  // Questions that were asked.
};

// `groups` is what the schedule made of the groups of a run, in the order in which they ran, and
// the results of that run differ. Asks in the order of the logarithm of the groups and of the
// dispatches in one. nullopt when the answers contradict that the run differs.
Result<std::optional<Culprit>> FindCulprit(const std::vector<ArrangedGroup>& groups,
                                           const DiffersWhen& differs);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SCHEDULE_BISECT_H_
