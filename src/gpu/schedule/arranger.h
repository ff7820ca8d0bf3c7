// Arranger: decides in what order the dispatches of a group run.
#ifndef ASSAY_GPU_SCHEDULE_ARRANGER_H_
#define ASSAY_GPU_SCHEDULE_ARRANGER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "assay/gpu_schedule.h"

#include "gpu/backend.h"

namespace assay::gpu {

// The dispatches of a group in recorded order, borrowed for the call. Never empty.
struct Group {
  uint64_t command_buffer = 0;  // From 1, by the commits of its queue.
  uint32_t number = 0;          // Of the group within the command buffer, from 1.
  uint32_t first_dispatch = 0;  // The number of its first dispatch, from 1 in the command buffer.
  std::span<const BackendDispatch> dispatches;
};

// What runs: one dispatch after another, but for a stretch whose workgroups are mixed.
struct Arrangement {
  // A permutation of the group's dispatches, counted from 0.
  std::vector<uint32_t> order;
  // order[mixed_begin, mixed_end) runs interleaved; none when they are equal. Only on a device that
  // interleaves.
  uint32_t mixed_begin = 0;
  uint32_t mixed_end = 0;
  uint64_t mixed_seed = 0;

  bool operator==(const Arrangement&) const = default;
};

// `count` dispatches as they were recorded.
Arrangement RecordedArrangement(size_t count);

// What `schedule` makes of a group. Depends on nothing else: of `group`, its place and what its
// dispatches declare. kRecorded gives the recorded order, one dispatch after another.
Arrangement Arrange(const Schedule& schedule, const Group& group);

// Called from the thread of each session, so it must be thread-safe.
class Arranger {
 public:
  Arranger() = default;
  Arranger(const Arranger&) = delete;
  Arranger& operator=(const Arranger&) = delete;
  virtual ~Arranger() = default;

  virtual Arrangement Choose(const Group& group) = 0;
  // False where results are wanted in place of an error about dispatches that conflict.
  virtual bool reports_conflicts() const { return true; }
};

// Arranges every group by `schedule`.
std::shared_ptr<Arranger> MakeScheduleArranger(const Schedule& schedule);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SCHEDULE_ARRANGER_H_
