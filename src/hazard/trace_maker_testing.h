// Makes a trace out of any numbers, for tests and fuzzers.
#ifndef ASSAY_HAZARD_TRACE_MAKER_TESTING_H_
#define ASSAY_HAZARD_TRACE_MAKER_TESTING_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "assay/trace.h"

namespace assay::hazard {

// One recipe an event. Whatever the numbers are, the events are ones that a TraceReader could
// deliver: a few buffers of 12 bytes, and at most 8 dispatches a command buffer, of at most 4
// accesses each.
std::vector<trace::Event> MakeTrace(const std::vector<std::vector<uint8_t>>& recipes);

// The events with their line numbers.
std::string Listing(std::span<const trace::Event> events);

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_TRACE_MAKER_TESTING_H_
