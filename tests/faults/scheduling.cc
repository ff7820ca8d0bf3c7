#include "tests/faults/scheduling.h"

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "assay/gpu_schedule.h"

#include "gpu/backend.h"

namespace assay::faults {
namespace {

Result<Outcome> RunUnder(const gpu::Schedule& schedule, Lost lost, const Around& around,
                         const OutcomeOn& run) {
  ASSAY_ASSIGN_OR_RETURN(auto backend,
                         gpu::MakeBackend("cpu", {.threads = 1, .schedule = schedule}));
  if (around) backend = around(std::move(backend));
  ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
  return run(*device, lost);
}

}  // namespace

Result<Outcome> OutcomeOf(Stage& stage) {
  Outcome outcome;
  outcome.reported = stage.Finish();
  // What conflicts has run all the same.
  ASSAY_ASSIGN_OR_RETURN(outcome.outputs, stage.Outputs());
  return outcome;
}

std::string TrySchedules(Lost lost, const Around& around, const OutcomeOn& run,
                         std::string_view part) {
  const auto right = RunUnder({}, kNothingLost, around, run);
  const auto cpu = gpu::MakeBackend("cpu", {.threads = 1});
  if (!right || !cpu) return right ? cpu.error().ToString() : right.error().ToString();
  std::optional<std::string> reported;
  std::string other_bits;
  for (const gpu::Schedule& schedule : gpu::FixedSchedules((*cpu)->info())) {
    const auto outcome = RunUnder(schedule, lost, around, run);
    if (!outcome) return outcome.error().ToString();
    const std::string said = Describe(outcome->reported, part);
    if (!reported) reported = said;
    if (said != reported) return fmt::format("{}: {}", gpu::FormatSchedule(schedule), said);
    const bool seeded = schedule.kind == gpu::ScheduleKind::kRandom ||
                        schedule.kind == gpu::ScheduleKind::kInterleaved;
    if (!seeded && outcome->outputs != right->outputs) {
      other_bits += fmt::format(" {}", gpu::FormatSchedule(schedule));
    }
  }
  if (!other_bits.empty()) *reported += fmt::format("; other bits under{}", other_bits);
  return *reported;
}

}  // namespace assay::faults
