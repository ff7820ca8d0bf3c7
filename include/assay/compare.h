// Compare: says of two traces whether they are the same, the same up to buffer numbering,
// different, or not comparable.
#ifndef ASSAY_COMPARE_H_
#define ASSAY_COMPARE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

namespace assay::compare {

// The values are the command's exit status (C1).
enum class Verdict : uint8_t {
  kIdentical = 0,  // The same bytes, both whole, neither refused; of version 2 a proof.
  kDifferent = 1,
  kRefused = 2,     // One of them proves nothing or cannot be read; `reason` says which and why.
  kRenumbered = 6,  // The same but for the buffers' numbers: a diagnostic, not a proof.
};
// "identical", "different", "refused", "renumbered".
std::string_view VerdictName(Verdict verdict);

// What the two sides are called in sentences.
struct Sides {
  std::string a = "A";
  std::string b = "B";
};

// Where an event stands in its trace.
struct Place {
  uint64_t line = 0;  // From 1; 0: the trace has no such event (a pure insertion or removal).
  uint64_t command_buffer = 0;  // From 1; 0: outside one.
  uint64_t dispatch = 0;        // From 1 within the command buffer; 0: not a dispatch.
  std::string kernel;           // Of a dispatch: the kernel's name.
  std::string text;             // The line.
};

// One difference of the aligned streams.
struct Difference {
  enum class Kind : uint8_t { kChanged, kOnlyInA, kOnlyInB };
  Kind kind = Kind::kChanged;
  Place a, b;
  std::string
      field;  // For kChanged: the first differing field ("grid", "args", "binding 2 range", ...).
  std::string value_a, value_b;
};

struct Counts {
  uint64_t changed = 0;
  uint64_t only_in_a = 0;
  uint64_t only_in_b = 0;
};

struct Report {
  Verdict verdict = Verdict::kIdentical;
  std::string name_a, name_b;
  int version_a = 0, version_b = 0;  // Of the format; 0: unknown.
  std::string digest;                // For kIdentical: of both.
  std::string reason;                // For kRefused: which and why.
  std::vector<std::string>
      notes;  // "A is version 1 and B is version 2: compared up to numbering", ...
  uint64_t lines_a = 0, lines_b = 0;  // What the end lines count.
  uint64_t buffers = 0;               // For kRenumbered: Y and X of "X of Y buffers renumbered".
  uint64_t buffers_renumbered = 0;
  std::vector<Difference> differences;  // The first `max_differences`, in order.
  // Where the first difference is a fact (a meta line): the first that is an event.
  std::optional<Difference> first_event;
  Counts counts;  // Of all differences.
  Sides sides = {};
};

struct Options {
  size_t max_differences = 20;
  Sides sides = {};  // For the report.
  // Asked now and then; true ends the comparison with kRefused. Must not throw; may be called from
  // two threads at a time.
  std::function<bool()> stop = {};
};

// Compares two trace files, plain or zstd, in bounded memory. Never an error: what cannot be read
// is kRefused with its reason.
Report CompareTraces(const std::string& path_a, const std::string& path_b,
                     const Options& options = {});
// Compares two traces held in memory, plain or zstd.
Report CompareTraceTexts(std::string_view a, std::string_view b, const Options& options = {});

// For people. The last line says the verdict in plain words.
std::string FormatText(const Report& report);
// That last line alone, without a newline.
std::string FormatVerdict(const Report& report);
// One JSON object, stable key order, ending in a newline.
std::string FormatJson(const Report& report);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_H_
