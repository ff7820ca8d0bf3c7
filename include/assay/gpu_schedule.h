// Schedules: orders in which a device runs the dispatches that no barrier orders
// (docs/schedules.md).
//
// A correctly fenced program leaves the same bytes under every schedule. A missing barrier shows
// under one of FixedSchedules() on every run, where an ordinary run shows it on a bad day.
//
//   auto backend = gpu::MakeBackend("cpu", {.schedule = {.kind = gpu::ScheduleKind::kReversed}});
#ifndef ASSAY_GPU_SCHEDULE_H_
#define ASSAY_GPU_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

namespace assay::gpu {

struct DeviceInfo;

// A group is the dispatches of one command buffer between two neighbouring barriers, or between a
// barrier and an end of the command buffer.
enum class ScheduleKind : uint8_t {
  kRecorded,     // None: the device runs a group as it likes.
  kReversed,     // One dispatch after another, the last of a group first.
  kLateWrites,   // One after another, each producer behind all its readers of the group.
  kRandom,       // One after another, shuffled.
  kInterleaved,  // One workgroup after another, those of all dispatches of a group mixed.
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::kRecorded;
  uint64_t seed = 0;  // Of kRandom and kInterleaved: the same seed, the same order.
  bool operator==(const Schedule&) const = default;
};

// "recorded", "reversed", "late-writes", "random:7", "interleaved:0".
std::string FormatSchedule(const Schedule& schedule);
// The reverse; "interleaved" alone has the seed 0. Error kInvalidArgument with what is allowed.
Result<Schedule> ParseSchedule(std::string_view text);

// The schedules that a program is tried under, as far as the device can run them. Any two
// dispatches of a group change places under at least one of them.
std::vector<Schedule> FixedSchedules(const DeviceInfo& info);

}  // namespace assay::gpu

#endif  // ASSAY_GPU_SCHEDULE_H_
