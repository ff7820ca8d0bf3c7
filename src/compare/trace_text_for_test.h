// Traces as text, made by hand or at random, for the tests of the comparison.
#ifndef ASSAY_COMPARE_TRACE_TEXT_FOR_TEST_H_
#define ASSAY_COMPARE_TRACE_TEXT_FOR_TEST_H_

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace assay::compare {

using LineList = std::vector<std::string>;

// The lines of a text of several lines; empty ones are left out.
LineList SplitLines(std::string_view text);
// A whole trace of these events: the first and the end line are added.
std::string Seal(const LineList& lines, int version = 2);

// A program of a few buffers and kernels and `steps` command buffers, the same for the same seed.
// Some buffers have labels, some are alike.
LineList RandomProgram(uint32_t seed, size_t steps);

// `lines` with every buffer's number replaced: by that of a random permutation.
LineList RenumberInPlace(const LineList& lines, std::mt19937* rng, bool* changed);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_TRACE_TEXT_FOR_TEST_H_
