// A backend around another one that runs the dispatches of each group in a chosen order (E8).
//
// It stands below the recorder, so that the trace of a run is the same bytes under every schedule:
//
//   session -> recorder -> schedule -> cpu | null
#ifndef ASSAY_GPU_SCHEDULE_SCHEDULED_BACKEND_H_
#define ASSAY_GPU_SCHEDULE_SCHEDULED_BACKEND_H_

#include <memory>
#include <string_view>

#include "assay/gpu_schedule.h"

#include "gpu/backend.h"
#include "gpu/schedule/arranger.h"

namespace assay::gpu {

// Gathers the dispatches of a group and, at its end, hands them on in the order that `arranger`
// chooses, with a barrier between each and the next, so that this is the order in which they run.
// Where dispatches of a group conflict for certain by what they declare, Wait reports the first
// such pair as kInvalidArgument when everything has run, unless the arranger wants no reports.
std::unique_ptr<Backend> MakeScheduledBackend(std::unique_ptr<Backend> inner,
                                              std::shared_ptr<Arranger> arranger);

// The same by a schedule; kRecorded gives `inner` itself. Error kUnsupported for kInterleaved on a
// backend that cannot.
Result<std::unique_ptr<Backend>> MakeScheduledBackend(std::unique_ptr<Backend> inner,
                                                      const Schedule& schedule);

// That a device cannot run ScheduleKind::kInterleaved, and what to do.
Error NotInterleavedError(const DeviceInfo& info);

// The label and the size of a buffer that a scheduled backend made; valid as long as the buffer.
struct ScheduledBufferInfo {
  std::string_view label;
  uint64_t size_bytes = 0;
};
ScheduledBufferInfo InfoOf(const BackendBuffer& scheduled_buffer);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SCHEDULE_SCHEDULED_BACKEND_H_
