// The usual forms of a twin.
#ifndef ASSAY_TESTS_FAULTS_TWINS_H_
#define ASSAY_TESTS_FAULTS_TWINS_H_

#include <functional>
#include <string>
#include <string_view>

#include "assay/base.h"

#include "tests/faults/corpus.h"

namespace assay::faults {

// `run` says what the catcher says of the program with the fault and without it.
Twin MakeTwin(int kind, Catcher catcher, std::string_view name,
              const std::function<std::string(bool faulty)>& run, std::string finding,
              std::string remark = "");

// The racy program fails with an error of this code and subject ("command-buffer in") whose text
// has `part`.
Twin ErrorTwin(int kind, Catcher catcher, std::string_view name,
               std::function<Status(bool faulty)> run, std::string_view code_and_subject,
               std::string part);

// The hazard checker on tests/golden/hazard/GOLDEN.trace and GOLDEN_near.trace.
Twin GoldenTwin(int kind, std::string_view name, std::string golden, std::string finding);

}  // namespace assay::faults

#endif  // ASSAY_TESTS_FAULTS_TWINS_H_
