#include <string>

#include <fmt/format.h>

#include "assay/hazard.h"

#include "base/counted.h"
#include "base/text.h"
#include "hazard/describe.h"
#include "hazard/rules.h"

namespace assay::hazard {
namespace {

// One line a finding, the word that a reader searches for first.
void AppendFindings(const std::vector<Finding>& findings, std::string* out) {
  for (const Finding& finding : findings) {
    const bool is_note = CategoryOf(finding.rule) == Category::kNote;
    const std::string_view word = finding.suppressed ? "suppressed"
                                  : is_note          ? "note"
                                  : finding.certain  ? "hazard"
                                                     : "possible";
    *out += fmt::format("{} {} {}: {}\n", word, RuleName(finding.rule),
                        FormatFingerprint(finding.fingerprint), Describe(finding));
  }
}

void AppendUnlisted(uint64_t counted, size_t listed, std::string_view what, std::string* out) {
  if (counted <= listed) return;
  *out += fmt::format("... and {} more {}, counted but not listed\n", counted - listed, what);
}

void AppendBarriers(const Report& report, std::string* out) {
  for (const RedundantBarrier& barrier : report.redundant_barriers) {
    *out += fmt::format("{} {} {}: {}\n", barrier.suppressed ? "suppressed" : "note",
                        RuleName(Rule::kRedundantBarrier), FormatFingerprint(barrier.fingerprint),
                        Describe(barrier));
  }
  AppendUnlisted(report.barriers.redundant, report.redundant_barriers.size(), "redundant barriers",
                 out);
}

void AppendSuggestions(const Report& report, std::string* out) {
  if (!report.best_suggestion) return;
  *out += fmt::format("suggestion: a barrier ahead of {} {}, the most that one can\n",
                      Describe(report.best_suggestion->before),
                      DescribeClosed(*report.best_suggestion));
  if (report.suggestion_count == 1) return;
  *out += fmt::format("suggestion: {} barriers close all pairs, and no fewer do:\n",
                      report.suggestion_count);
  for (const Suggestion& suggestion : report.suggestions) {
    *out += fmt::format("  ahead of {}, where one {}\n", Describe(suggestion.before),
                        DescribeClosed(suggestion));
  }
  AppendUnlisted(report.suggestion_count, report.suggestions.size(), "places", out);
}

}  // namespace

std::string SummaryLine(const Report& report, int exit_status) {
  const auto count = [&report](Category category) {
    return report.certain[static_cast<size_t>(category)];
  };
  return fmt::format(
      "check: rc {}; hazards {} (raw {}, war {}, waw {}, host {}, lifetime {}, bounds {}, self "
      "{}); possible {}; barriers issued {} redundant {} least {}\n",
      exit_status, report.hazards(), count(Category::kRaw), count(Category::kWar),
      count(Category::kWaw), count(Category::kHost), count(Category::kLifetime),
      count(Category::kBounds), count(Category::kSelf), report.possible, report.barriers.issued,
      report.barriers.redundant, report.barriers.least);
}

std::string FormatText(const Report& report, const Options& options) {
  std::string out = fmt::format(
      "{}: {}{}, {}, {}\n", Printable(report.name),
      report.version == 0 ? "" : fmt::format("version {}, ", report.version),
      Counted(report.command_buffers, "command buffer"), Counted(report.dispatches, "dispatch"),
      Counted(report.barriers.issued, "barrier"));
  if (!report.refused.empty()) {
    out += fmt::format("refused: {}\n", Printable(report.refused));
  } else if (report.dispatches == 0 && report.findings.empty()) {
    out += "note: nothing was dispatched, so there was nothing to check\n";
  }
  AppendFindings(report.findings, &out);
  uint64_t counted = report.hazards() + report.possible;
  uint64_t listed = 0;
  for (const Finding& finding : report.findings) listed += finding.suppressed ? 0 : 1;
  AppendUnlisted(counted, listed, "findings", &out);
  AppendFindings(report.notes, &out);
  listed = 0;
  for (const Finding& note : report.notes) listed += note.suppressed ? 0 : 1;
  AppendUnlisted(report.note_count, listed, "notes", &out);
  AppendBarriers(report, &out);
  AppendSuggestions(report, &out);
  for (const Fingerprint& unused : report.unused_suppressions) {
    out += fmt::format("note: the suppression {} matched nothing\n", FormatFingerprint(unused));
  }
  out += fmt::format("{}\n", BlindSpots());
  out += SummaryLine(report, ExitStatus(report, options));
  return out;
}

}  // namespace assay::hazard
