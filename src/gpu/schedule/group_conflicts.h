// Which dispatches of one group conflict, by what they declare.
#ifndef ASSAY_GPU_SCHEDULE_GROUP_CONFLICTS_H_
#define ASSAY_GPU_SCHEDULE_GROUP_CONFLICTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "assay/base.h"

#include "gpu/backend.h"

namespace assay::gpu {

// Two bindings of two dispatches that share bytes of which one of them writes. Dispatches are
// counted from 0 in their group, and `first` < `second`.
struct GroupConflict {
  uint32_t first = 0;
  uint32_t second = 0;
  uint32_t first_binding = 0;
  uint32_t second_binding = 0;
  ByteRange range;       // The shared bytes.
  bool certain = false;  // Both ranges are exact.
};

// Calls visit for every conflict, in no particular order, until it returns false. A dispatch
// without bindings has none. Costs the time of sorting the bindings and of the conflicts found.
void ForEachConflict(std::span<const BackendDispatch> group,
                     const std::function<bool(const GroupConflict&)>& visit);

// The certain conflict that ends first in recorded order and, of those, spans the fewest
// dispatches: an immediate pair of docs/hazards.md. Between bindings the lowest are named.
std::optional<GroupConflict> FirstCertainConflict(std::span<const BackendDispatch> group);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SCHEDULE_GROUP_CONFLICTS_H_
