// The grammar of docs/trace-format.md on the reading side.
//
// Only the one form that FormatEvent writes is accepted, so that equal events are equal bytes: the
// order of fields is fixed, a space separates them, numbers have no leading zero, hex is lower
// case, and an empty value has no field.
#ifndef ASSAY_TRACE_PARSE_H_
#define ASSAY_TRACE_PARSE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "assay/trace.h"

namespace assay::trace {

// Where and why a line is refused.
struct ParseFailure {
  size_t column = 0;  // From 1.
  std::string message;
};

// Reads an event's line (no newline) into `event`. On failure it returns false and fills `failure`.
bool ParseEventLine(std::string_view line, Event* event, ParseFailure* failure);

// The first line, `assay-trace N`. A version that does not fit 64 bits is given as UINT64_MAX.
bool ParseFirstLine(std::string_view line, uint64_t* version, ParseFailure* failure);

// The last line.
struct EndOfTrace {
  uint64_t lines = 0;
  std::string digest;
};
// True for a line that claims to be the last: its first word is `end`.
bool IsEndLine(std::string_view line);
bool ParseEndLine(std::string_view line, EndOfTrace* end, ParseFailure* failure);

}  // namespace assay::trace

#endif  // ASSAY_TRACE_PARSE_H_
