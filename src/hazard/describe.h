// Sentences about findings, shared by all outputs. Names are made safe to print.
#ifndef ASSAY_HAZARD_DESCRIBE_H_
#define ASSAY_HAZARD_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "assay/hazard.h"

namespace assay::hazard {

// "dispatch 2 of command buffer 1 (mul_f32, line 10)" or "the host (line 12)".
std::string Describe(const Actor& actor);
// A full sentence.
std::string Describe(const Finding& finding);
std::string Describe(const RedundantBarrier& barrier);
// "closes 3 pairs", "closes 3 pairs and 1 possible pair".
std::string DescribeClosed(const Suggestion& suggestion);

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_DESCRIBE_H_
