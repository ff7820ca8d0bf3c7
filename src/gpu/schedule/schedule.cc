#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "assay/gpu.h"
#include "assay/gpu_schedule.h"

namespace assay::gpu {
namespace {

enum class Seed : uint8_t { kNone, kOptional, kRequired };

struct KindRow {
  ScheduleKind kind;
  std::string_view name;
  Seed seed;
};

constexpr std::array kKinds = {
    KindRow{ScheduleKind::kRecorded, "recorded", Seed::kNone},
    KindRow{ScheduleKind::kReversed, "reversed", Seed::kNone},
    KindRow{ScheduleKind::kLateWrites, "late-writes", Seed::kNone},
    KindRow{ScheduleKind::kRandom, "random", Seed::kRequired},
    KindRow{ScheduleKind::kInterleaved, "interleaved", Seed::kOptional},
};

std::optional<uint64_t> ParseSeed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

}  // namespace

std::string FormatSchedule(const Schedule& schedule) {
  for (const KindRow& row : kKinds) {
    if (row.kind != schedule.kind) continue;
    return row.seed == Seed::kNone ? std::string(row.name)
                                   : fmt::format("{}:{}", row.name, schedule.seed);
  }
  return "";
}

Result<Schedule> ParseSchedule(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const KindRow& row : kKinds) {
    if (row.name != name) continue;
    if (colon == std::string_view::npos) {
      if (row.seed == Seed::kRequired) break;
      return Schedule{.kind = row.kind, .seed = 0};
    }
    const std::optional<uint64_t> seed = ParseSeed(text.substr(colon + 1));
    if (row.seed == Seed::kNone || !seed) break;
    return Schedule{.kind = row.kind, .seed = *seed};
  }
  return Fail(ErrorCode::kInvalidArgument, std::string(text),
              fmt::format("\"{}\" is no schedule; the schedules are recorded, reversed, "
                          "late-writes, random:SEED and interleaved[:SEED], with a seed between 0 "
                          "and {}.",
                          text, UINT64_MAX));
}

std::vector<Schedule> FixedSchedules(const DeviceInfo& info) {
  std::vector<Schedule> schedules = {
      // This one alone inverts every pair; the others find what hides behind other dispatches.
      {.kind = ScheduleKind::kReversed, .seed = 0}, {.kind = ScheduleKind::kLateWrites, .seed = 0},
      {.kind = ScheduleKind::kRandom, .seed = 1},   {.kind = ScheduleKind::kRandom, .seed = 2},
      {.kind = ScheduleKind::kRandom, .seed = 3},
  };
  if (info.interleaves) schedules.push_back({.kind = ScheduleKind::kInterleaved, .seed = 1});
  return schedules;
}

}  // namespace assay::gpu
