// In what two lines that stand for each other differ.
#ifndef ASSAY_COMPARE_FIELDS_H_
#define ASSAY_COMPARE_FIELDS_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/pairing.h"

namespace assay::compare {

// What both sides are called, for the values that are shown.
struct Names {
  const Declarations& a;
  const Declarations& b;
  const Pairing& pairing;
};

struct FieldDifference {
  std::string field;
  std::string value_a, value_b;
};

// The first field in which two events of one kind differ: "kernel", "grid", "args", "binding 2
// range", "size", ... Names are compared by what they stand for. Lines that no event is made of
// differ in the field "line".
FieldDifference FirstDifference(std::string_view line_a, std::string_view line_b,
                                const Names& names);

// The kernel's name of a dispatch line; empty for others.
std::string_view KernelOf(std::string_view line, const Declarations& declarations);

// Which lines of `a` and `b`, of which none equals another, are most likely changes of each other:
// pairs of indices that rise on both sides. Only events of one kind are paired, and dispatches of
// one kernel rather than of two.
std::vector<std::pair<size_t, size_t>> PairChanged(std::span<const std::string_view> a,
                                                   std::span<const std::string_view> b,
                                                   const Names& names);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_FIELDS_H_
