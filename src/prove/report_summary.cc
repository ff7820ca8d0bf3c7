#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "assay/prove_report.h"

#include "base/text.h"
#include "prove/report_text.h"

namespace assay::prove {
namespace {

using compare::Verdict;

// A part's own report shows so many differences.
constexpr size_t kShownDifferences = 20;

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines = Lines(text);
  return lines.empty() ? std::string() : lines.back();
}

Outcome OutcomeOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return Outcome::kSame;
    case Verdict::kRefused:
      return Outcome::kRefused;
    case Verdict::kDifferent:
    case Verdict::kRenumbered:
      return Outcome::kDifferent;
  }
  return Outcome::kRefused;
}

ReportPart KernelsPart(const ScanComparison& kernels) {
  return {.name = "kernels",
          .outcome = OutcomeOf(kernels.verdict),
          .says = LastLine(FormatScanSummary(kernels)),
          .text = FormatScanText(kernels)};
}

ReportPart IdsPart(const IdComparison& ids, const compare::Sides& sides) {
  const std::string line = FormatIdsLine(ids, sides);
  return {.name = fmt::format("ids depth {}", ids.depth),
          .outcome = ids.differing == 0 ? Outcome::kSame : Outcome::kDifferent,
          .says = LastLine(line),
          .text = line};
}

// A trace of which `change` says what is different.
ReportPart TracePart(std::string name, const compare::Report& report, const Change& change) {
  ReportPart part;
  part.name = std::move(name);
  part.outcome = OutcomeOf(report.verdict);
  part.says = compare::FormatVerdict(report);
  if (part.outcome != Outcome::kRefused) {
    part.trace_a = report.name_a;
    part.trace_b = report.name_b;
  }
  if (part.outcome == Outcome::kDifferent) {
    part.changes = Lines(FormatChange(change));
    part.context = change.context;
  }
  compare::Report shown = report;
  if (shown.differences.size() > kShownDifferences) shown.differences.resize(kShownDifferences);
  part.text = compare::FormatText(shown);
  return part;
}

ReportPart DepthPart(const DepthComparison& depth, const Change& change,
                     const compare::Sides& sides) {
  const std::string name = fmt::format("trace depth {}", depth.depth);
  if (depth.report) return TracePart(name, *depth.report, change);
  ReportPart part;
  part.name = name;
  part.outcome = Outcome::kRefused;
  part.says = fmt::format("Only {} has it.", depth.in_a ? sides.a : sides.b);
  part.text = part.says + "\n";
  return part;
}

// What a difference of a part comes to under the configuration.
class Judgement final {
 public:
  explicit Judgement(const Proof& proof) : proof_(proof) {}

  void Trace(const Change& change, ReportPart* part) const {
    if (!proof_.require_trace) return NotAsked(part);
    if (part->outcome == Outcome::kDifferent && !change.looked_at && Allowed(change.kinds)) {
      part->outcome = Outcome::kAllowed;
    }
  }
  void Kernels(const ScanComparison& kernels, ReportPart* part) const {
    if (!proof_.require_kernels) return NotAsked(part);
    if (part->outcome != Outcome::kDifferent) return;
    std::vector<ChangeKind> kinds;
    if (kernels.added > 0) kinds.push_back(ChangeKind::kKernelsAdded);
    if (kernels.removed > 0) kinds.push_back(ChangeKind::kKernelsRemoved);
    if (kernels.changed > 0) kinds.push_back(ChangeKind::kKernelsChanged);
    if (Allowed(kinds)) part->outcome = Outcome::kAllowed;
  }
  void Ids(ReportPart* part) const {
    if (!proof_.require_ids) NotAsked(part);
  }

 private:
  static void NotAsked(ReportPart* part) {
    if (part->outcome != Outcome::kSame) part->outcome = Outcome::kNotAsked;
  }
  bool Allowed(const std::vector<ChangeKind>& kinds) const {
    return std::ranges::all_of(
        kinds, [this](ChangeKind kind) { return std::ranges::count(proof_.allow, kind) > 0; });
  }

  const Proof& proof_;
};

void AddRefusal(const Refusal& refusal, Summary* summary) {
  auto part = std::ranges::find(summary->parts, refusal.by, &ReportPart::name);
  if (part == summary->parts.end()) {
    part = summary->parts.insert(part, ReportPart{});
    part->name = refusal.by;
  }
  part->outcome = Outcome::kRefused;
  part->says = refusal.reason;
  part->text = RefusalText(refusal);
}

// The verdict of a proof that found kinds of change, or none.
void SetVerdict(int exit_status, bool changed, Summary* summary) {
  summary->command = "prove";
  summary->name_a = "base";
  summary->name_b = "here";
  if (exit_status == 2) {
    summary->outcome = Outcome::kRefused;
    summary->headline = "Refused";
  } else if (exit_status != 0) {
    summary->outcome = Outcome::kDifferent;
    summary->headline = "Different";
  } else {
    summary->outcome = changed ? Outcome::kAllowed : Outcome::kSame;
    summary->headline = changed ? "Only changes that are allowed" : "No change";
  }
}

std::string_view HeadlineOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "Identical";
    case Verdict::kDifferent:
      return "Different";
    case Verdict::kRenumbered:
      return "The same but for the numbers of buffers";
    case Verdict::kRefused:
      return "Refused";
  }
  return "Refused";
}

Summary SummaryOfComparison(Verdict verdict, const std::string& name_a, const std::string& name_b) {
  Summary summary;
  summary.command = "compare";
  summary.outcome = OutcomeOf(verdict);
  summary.headline = HeadlineOf(verdict);
  summary.sides = {fmt::format("A: {}", Printable(name_a)),
                   fmt::format("B: {}", Printable(name_b))};
  return summary;
}

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSame:
      return "same";
    case Outcome::kAllowed:
      return "allowed";
    case Outcome::kDifferent:
      return "different";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kNotAsked:
      return "not required";
  }
  return "refused";
}

Summary Summarize(const Proof& proof) {
  Summary summary;
  SetVerdict(proof.exit_status, !proof.kinds.empty(), &summary);
  summary.verdict = LastLine(FormatProofVerdict(proof));
  summary.changed = LastLine(ChangedLine(proof));
  summary.sides = {LastLine(SideLine(proof.base)), LastLine(SideLine(proof.here))};
  if (proof.evidence) {
    const EvidenceReport& evidence = *proof.evidence;
    const Judgement judgement(proof);
    summary.notes = evidence.notes;
    if (evidence.kernels) {
      judgement.Kernels(*evidence.kernels,
                        &summary.parts.emplace_back(KernelsPart(*evidence.kernels)));
    }
    for (size_t i = 0; i < evidence.depths.size(); ++i) {
      const Change change = i < proof.changes.size() ? proof.changes[i] : Change();
      judgement.Trace(change, &summary.parts.emplace_back(
                                  DepthPart(evidence.depths[i], change, evidence.sides)));
    }
    for (const IdComparison& ids : evidence.ids) {
      judgement.Ids(&summary.parts.emplace_back(IdsPart(ids, evidence.sides)));
    }
  }
  for (const Refusal& refusal : proof.refused) AddRefusal(refusal, &summary);
  return summary;
}

Summary Summarize(const MatrixProof& proof) {
  Summary summary;
  bool changed = false;
  for (const JobProof& job : proof.jobs) {
    const Summary one = Summarize(job.proof);
    changed = changed || !job.proof.kinds.empty();
    for (const std::string& note : one.notes) {
      summary.notes.push_back(fmt::format("{}: {}", job.id, note));
    }
    if (summary.sides.empty()) summary.sides = one.sides;
    for (const ReportPart& part : one.parts) {
      summary.parts.emplace_back(part).name = fmt::format("{} {}", job.id, part.name);
    }
  }
  SetVerdict(proof.exit_status, changed, &summary);
  summary.verdict = LastLine(FormatMatrixProofVerdict(proof));
  // Those of a job are among its parts.
  if (proof.jobs.empty()) {
    for (const Refusal& refusal : proof.refused) AddRefusal(refusal, &summary);
  }
  return summary;
}

Result<Summary> Summarize(const EvidenceReport& report) {
  Summary summary = SummaryOfComparison(report.verdict, report.name_a, report.name_b);
  summary.verdict = LastLine(FormatEvidenceText(report));
  summary.notes = report.notes;
  if (report.kernels) summary.parts.push_back(KernelsPart(*report.kernels));
  for (const DepthComparison& depth : report.depths) {
    Change change;
    if (depth.report) {
      ASSAY_ASSIGN_OR_RETURN(
          change, ClassifyChange(depth.report->name_a, depth.report->name_b, *depth.report));
    }
    summary.parts.push_back(DepthPart(depth, change, report.sides));
  }
  for (const IdComparison& ids : report.ids) summary.parts.push_back(IdsPart(ids, report.sides));
  if (summary.parts.empty()) AddRefusal({.by = "evidence", .reason = report.reason}, &summary);
  return summary;
}

Result<Summary> Summarize(const compare::Report& report) {
  Summary summary = SummaryOfComparison(report.verdict, report.name_a, report.name_b);
  summary.verdict = compare::FormatVerdict(report);
  summary.notes = report.notes;
  ASSAY_ASSIGN_OR_RETURN(const Change change, ClassifyChange(report.name_a, report.name_b, report));
  summary.parts.push_back(TracePart("trace", report, change));
  return summary;
}

}  // namespace assay::prove
