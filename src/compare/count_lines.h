// Counts lines at memory speed, and looks for the one kind of line that matters then.
#ifndef ASSAY_COMPARE_COUNT_LINES_H_
#define ASSAY_COMPARE_COUNT_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::compare {

struct LineCount {
  uint64_t newlines = 0;
  // Whether a line behind a newline of the text may begin with "refu"; only `u`, its fourth letter,
  // is looked at, which no other event has there.
  bool maybe_refused = false;
};

// Looks at newlines among the first text.size() - kLookAhead bytes only, so that every newline it
// counts has its line's beginning in sight; the rest is left to the next call.
inline constexpr size_t kLookAhead = 4;
LineCount CountLines(std::string_view text);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_COUNT_LINES_H_
