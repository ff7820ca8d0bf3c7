// Perturbation: a decode under a schedule, compared with the recorded order, and the pair of
// dispatches that a difference comes down to.
#ifndef ASSAY_CLI_PERTURBATION_H_
#define ASSAY_CLI_PERTURBATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/gpu_schedule.h"

#include "cli/decode_rig.h"
#include "gpu/schedule/bisect.h"

namespace assay::cli {

// Bytes that both dispatches of a pair declare, one of them to write.
struct SharedBytes {
  std::string label;
  ByteRange range;
  Access first = Access::kRead;
  Access second = Access::kRead;
  bool certain = false;
};

struct PairSide {
  uint32_t dispatch = 0;  // From 1 in its command buffer.
  std::string kernel;
};

// The pair that a difference comes down to. The bytes are sorted; none where no declaration shows
// why the order matters.
struct CulpritPair {
  gpu::Culprit culprit;
  PairSide first;
  PairSide second;
  std::vector<SharedBytes> shared;
};

struct ScheduleOutcome {
  gpu::Schedule schedule;
  uint64_t rearranged = 0;  // Groups that did not run in recorded order.
  std::optional<StepDifference> difference = {};
  std::optional<CulpritPair> pair =
      {};  // Where there is a difference, it was asked for and was found.
};

// Decodes `plan` under `schedule`; with `find_pair`, bisects a difference.
Result<ScheduleOutcome> TrySchedule(DecodeRig& rig, const DecodePlan& plan,
                                    const Baseline& baseline, const gpu::Schedule& schedule,
                                    bool find_pair);

}  // namespace assay::cli

#endif  // ASSAY_CLI_PERTURBATION_H_
