// Whether a dispatch line is right, found without making an event of it.
#ifndef ASSAY_TRACE_QUICK_DISPATCH_H_
#define ASSAY_TRACE_QUICK_DISPATCH_H_

#include <cstddef>

#include "trace/line_rules.h"

namespace assay::trace {

// Bytes that must be readable behind a text given to QuickDispatch; the first is a line feed.
inline constexpr size_t kQuickSlack = 64;

// The byte behind the line feed of the line that begins at `line`, when it is a dispatch line that
// ParseEventLine takes and whose kernel and buffers are declared. Null when that is not certain:
// the line may be wrong, or right in a way that is left to the parser (an unnamed buffer, numbers
// of twenty digits). The line ends in a line feed, and kQuickSlack readable bytes stand behind it.
const char* QuickDispatch(const char* line, const NumberSet& kernels, const NumberSet& buffers);

}  // namespace assay::trace

#endif  // ASSAY_TRACE_QUICK_DISPATCH_H_
