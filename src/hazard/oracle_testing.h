// Oracle: the rules of docs/hazards.md by brute force, byte by byte and pair by pair, for traces of
// a few dispatches. It shares no code with the checker.
#ifndef ASSAY_HAZARD_ORACLE_TESTING_H_
#define ASSAY_HAZARD_ORACLE_TESTING_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <vector>

#include "assay/hazard.h"
#include "assay/trace.h"

namespace assay::hazard {

// A finding by what it says, for comparison. Lines stand for the two sides.
struct PlainFinding {
  Rule rule;
  bool certain;
  uint64_t first_line;
  uint64_t second_line;
  int64_t buffer;  // -1: all memory.
  uint64_t begin;
  uint64_t end;
  int32_t first_binding;
  int32_t second_binding;
  auto operator<=>(const PlainFinding&) const = default;  // NOLINT(modernize-use-nullptr)
};
std::ostream& operator<<(std::ostream& out, const PlainFinding& finding);

struct PlainReport {
  std::multiset<PlainFinding> findings;
  std::multiset<PlainFinding> notes;
  std::set<uint64_t> redundant_barrier_lines;
  uint64_t least_barriers = 0;
  bool operator==(const PlainReport&) const = default;
};
std::ostream& operator<<(std::ostream& out, const PlainReport& report);

// Event i stands in line i + 1. Accesses must end at byte 64 or before; command buffers have at
// most 12 dispatches.
PlainReport OracleCheck(std::span<const trace::Event> events);

// What the checker says, in the same terms.
PlainReport ToPlain(const Report& report);

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_ORACLE_TESTING_H_
