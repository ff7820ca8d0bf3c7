// Two traces of any lines, each ended rightly, split at the first zero byte. Nothing may crash; of
// two that keep the format, the verdict must not depend on which is which.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "assay/compare.h"

#include "support/trace_text.h"

namespace {

using assay::compare::CompareTraceTexts;
using assay::compare::Report;
using assay::compare::Verdict;

void Require(bool holds) {
  if (!holds) std::abort();
}

// What must hold of any report.
void CheckReport(const Report& report) {
  const assay::compare::Counts& counts = report.counts;
  const bool counted = counts.changed + counts.only_in_a + counts.only_in_b > 0;
  Require(counted == (report.verdict == Verdict::kDifferent));
  Require(report.reason.empty() == (report.verdict != Verdict::kRefused));
  Require(report.buffers_renumbered <= report.buffers);
  Require(!assay::compare::FormatText(report).empty());
  Require(!assay::compare::FormatJson(report).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t split = input.find('\0');
  if (split == std::string_view::npos) return 0;
  const std::string a = assay::testing::Sealed(std::string(input.substr(0, split)));
  const std::string b = assay::testing::Sealed(std::string(input.substr(split + 1)));
  const Report forward = CompareTraceTexts(a, b), backward = CompareTraceTexts(b, a);
  CheckReport(forward);
  CheckReport(backward);
  const auto events_a = assay::testing::ReadAll(a), events_b = assay::testing::ReadAll(b);
  if (!events_a || !events_b) return 0;
  Require(forward.verdict == backward.verdict);
  Require(forward.lines_a == backward.lines_b && forward.lines_b == backward.lines_a);
  Require((a == b) == (forward.verdict == Verdict::kIdentical) ||
          forward.verdict == Verdict::kRefused);
  return 0;
}
