// Timeline: where in the trace the checker stands.
//
// Dispatches are numbered through the whole trace, from 1; such a number is an ordinal, and 0 means
// none. A group is the dispatches between two barriers, or between a barrier and an end of the
// command buffer.
#ifndef ASSAY_HAZARD_TIMELINE_H_
#define ASSAY_HAZARD_TIMELINE_H_

#include <algorithm>
#include <cstdint>

namespace assay::hazard {

struct Timeline {
  uint32_t now = 0;  // The dispatch last taken.
  // The first dispatch of the group that is open.
  uint32_t group_from = 1;
  // The first dispatch of the group before it in the same command buffer; group_from when there is
  // none.
  uint32_t previous_from = 1;
  // The first dispatch after the latest barrier of a least set of barriers.
  uint32_t least_from = 1;
  // The first dispatch that the host has not waited for.
  uint32_t in_flight_from = 1;
  // The latest dispatch that declares no accesses, in the whole trace.
  uint32_t undeclared = 0;

  bool InGroup(uint32_t ordinal) const { return ordinal >= group_from; }
  bool InPreviousGroup(uint32_t ordinal) const {
    return ordinal >= previous_from && ordinal < group_from;
  }
  bool InFlight(uint32_t ordinal) const { return ordinal >= in_flight_from; }
  // Below it, no rule of ordering asks for a dispatch any longer; those of the host may.
  uint32_t ordering_from() const { return std::min(previous_from, least_from); }
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_TIMELINE_H_
