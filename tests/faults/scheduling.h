// A program under the fixed schedules.
#ifndef ASSAY_TESTS_FAULTS_SCHEDULING_H_
#define ASSAY_TESTS_FAULTS_SCHEDULING_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/gpu.h"

#include "tests/faults/checking.h"
#include "tests/faults/stage.h"

namespace assay::faults {

// What a program leaves: what Wait reported, and the outputs, which are there all the same.
struct Outcome {
  Status reported;
  std::vector<float> outputs;
};
// Runs what `stage` has encoded.
Result<Outcome> OutcomeOf(Stage& stage);
using OutcomeOn = std::function<Result<Outcome>(gpu::Device& device, Lost lost)>;

// Under each of the fixed schedules of the cpu device: what Wait reports, which is the same under
// all of them and has `part`, and those without a seed that leave other bits than the whole program
// without a schedule. (What a seed leaves is up to its shuffle.) "" when nothing is reported and no
// bit differs.
std::string TrySchedules(Lost lost, const Around& around, const OutcomeOn& run,
                         std::string_view part);

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_SCHEDULING_H_
