#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/prove.h"

#include "base/counted.h"
#include "base/text.h"
#include "prove/process.h"
#include "prove/proof_steps.h"
#include "prove/report_text.h"

namespace assay::prove {
namespace {

using compare::Verdict;
using nlohmann::ordered_json;

// More of a line than this is not shown to people.
constexpr size_t kShownBytes = 200;

int StatusOf(Verdict verdict) { return static_cast<int>(verdict); }

std::vector<std::string_view> Names(const std::vector<ChangeKind>& kinds) {
  std::vector<std::string_view> names;
  for (const ChangeKind kind : kinds) names.push_back(ChangeKindName(kind));
  return names;
}

ordered_json SideJson(const ProofSide& side) {
  return {{"name", side.name},
          {"commit", side.commit},
          {"changed_files", side.changed},
          {"evidence", side.evidence},
          {"cached", side.cached}};
}

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json ChangeJson(int64_t depth, const Change& change) {
  ordered_json json = {{"depth", depth}};
  json["kinds"] = Names(change.kinds);
  json["barriers"] = {change.barriers_a, change.barriers_b};
  json["dispatches"] = {change.dispatches_a, change.dispatches_b};
  json["dispatches_added"] = change.dispatches_added;
  json["dispatches_removed"] = change.dispatches_removed;
  json["dispatches_moved"] = change.dispatches_moved;
  json["constants_changed"] = change.constants_changed;
  json["bindings_changed"] = change.bindings_changed;
  json["order_legal"] = OrNull(change.order_legal);
  json["order_conflict"] = change.order_conflict;
  json["hazards"] = {OrNull(change.hazards_a), OrNull(change.hazards_b)};
  json["looked_at"] = OrNull(change.looked_at);
  json["context"] = ordered_json::array();
  const auto number = [](uint64_t line) { return line == 0 ? ordered_json() : ordered_json(line); };
  for (const Change::Line& line : change.context) {
    json["context"].push_back({{"mark", std::string(1, line.mark)},
                               {"line_a", number(line.line_a)},
                               {"line_b", number(line.line_b)},
                               {"text", line.text}});
  }
  return json;
}

}  // namespace

std::string Shown(std::string_view text) {
  std::string out = Printable(text.substr(0, kShownBytes));
  if (text.size() > kShownBytes) out += "...";
  return out;
}

std::string SideLine(const ProofSide& side) {
  std::string text = fmt::format("{}: {} ({:.12}", side.role, Printable(side.name), side.commit);
  if (side.changed > 0) text += fmt::format(" with {}", Counted(side.changed, "changed file"));
  text += ')';
  if (!side.evidence.empty()) {
    text += fmt::format(", {}{}", side.cached ? "from the cache: " : "", Printable(side.evidence));
  }
  return text + '\n';
}

std::string RefusalText(const Refusal& refusal) {
  std::string text = fmt::format("refused by {}: {}\n", refusal.by, Printable(refusal.reason));
  if (refusal.log.empty()) return text;
  text += fmt::format("the end of {}:\n", Printable(refusal.log));
  std::string_view tail = refusal.log_tail;
  while (!tail.empty()) {
    const size_t end = std::min(tail.find('\n'), tail.size());
    text += "  " + Printable(tail.substr(0, end)) + '\n';
    tail.remove_prefix(std::min(end + 1, tail.size()));
  }
  return text;
}

std::string ContextText(const Change& change) {
  if (change.context.empty()) return {};
  std::string text = fmt::format("the first difference (line in {}, line in {}):\n", change.sides.a,
                                 change.sides.b);
  const auto number = [](uint64_t line) {
    return line == 0 ? std::string() : fmt::format("{}", line);
  };
  for (const Change::Line& line : change.context) {
    text += fmt::format("{} {:>7} {:>7}  {}\n", line.mark, number(line.line_a), number(line.line_b),
                        Shown(line.text));
  }
  return text;
}

std::string DepthText(const DepthComparison& depth, const Change& change) {
  std::string text = fmt::format("== trace depth {}\n", depth.depth);
  if (!depth.report)
    return text + fmt::format("only {} has it\n", depth.in_a ? change.sides.a : change.sides.b);
  const compare::Report& report = *depth.report;
  const auto listed = [](const std::optional<uint64_t>& hazards, const std::string& path) {
    return hazards.value_or(0) == 0
               ? std::string()
               : fmt::format("the hazards: assay check {}\n", Printable(ShellQuote(path)));
  };
  if (report.verdict == Verdict::kDifferent) {
    return text + FormatChange(change) + listed(change.hazards_a, report.name_a) +
           listed(change.hazards_b, report.name_b) + ContextText(change) +
           compare::FormatText(report);
  }
  if (report.verdict == Verdict::kRenumbered) text += FormatChange(change);
  return text + compare::FormatVerdict(report) + '\n';
}

std::string ChangedLine(const Proof& proof) {
  if (!proof.refused.empty() || !proof.evidence) return {};
  const bool ids = proof.require_ids && proof.evidence->differing_ids() > 0;
  if (proof.kinds.empty()) {
    return ids ? "changed: only the ids\n" : "changed: nothing\n";
  }
  std::vector<std::string> words;
  for (const ChangeKind kind : proof.kinds) {
    const bool allowed = std::ranges::count(proof.not_allowed, kind) == 0;
    words.push_back(fmt::format("{}{}", ChangeKindName(kind), allowed ? " (allowed)" : ""));
  }
  if (ids) words.emplace_back("ids");
  return fmt::format("changed: {}\n", fmt::join(words, ", "));
}

std::vector<std::string> RequiredParts(const Proof& proof) {
  std::vector<std::string> parts;
  if (proof.require_kernels) parts.emplace_back("kernels");
  if (proof.require_trace) parts.emplace_back("trace");
  if (proof.require_ids) parts.emplace_back("ids");
  return parts;
}

std::string FormatRefusal(const Refusal& refusal) {
  std::string text = fmt::format("Refused by {}: {}", refusal.by, refusal.reason);
  if (!text.ends_with('.') && !text.ends_with('?')) text += '.';
  if (!refusal.log.empty()) text += fmt::format(" The log is \"{}\".", refusal.log);
  return text;
}

std::string FormatProofVerdict(const Proof& proof) {
  if (!proof.evidence && proof.refused.empty()) {
    return fmt::format("prove: rc {} (recorded, not compared)\n", proof.exit_status);
  }
  std::vector<std::string_view> by;
  for (const Refusal& refusal : proof.refused) by.push_back(refusal.by);
  if (!proof.evidence || proof.evidence->depths.empty()) {
    return fmt::format("prove: rc {} (refused by {})\n", proof.exit_status, fmt::join(by, ", "));
  }
  const EvidenceReport& evidence = *proof.evidence;
  std::string parts =
      evidence.kernels ? fmt::format("kernels rc {}, added {}", StatusOf(evidence.kernels->verdict),
                                     evidence.kernels->added)
                       : std::string("no kernels");
  parts += "; trace";
  for (const DepthComparison& depth : evidence.depths) {
    const int status = StatusOf(depth.report ? depth.report->verdict : Verdict::kRefused);
    parts += fmt::format("{} depth {} rc {}", &depth == &evidence.depths.front() ? "" : ",",
                         depth.depth, status);
  }
  parts += evidence.ids.empty() ? std::string("; no ids")
                                : fmt::format("; ids differ {}", evidence.differing_ids());
  if (!by.empty()) parts += fmt::format("; refused by {}", fmt::join(by, ", "));
  return fmt::format("prove: rc {} ({})\n", proof.exit_status, parts);
}

std::string FormatProofBody(const Proof& proof) {
  std::string text = SideLine(proof.base) + SideLine(proof.here);
  if (proof.evidence) {
    const EvidenceReport& evidence = *proof.evidence;
    for (const std::string& note : evidence.notes) {
      text += fmt::format("note: {}\n", Printable(note));
    }
    if (evidence.kernels) text += "== kernels\n" + FormatScanText(*evidence.kernels);
    for (size_t i = 0; i < evidence.depths.size(); ++i) {
      text += DepthText(evidence.depths[i], i < proof.changes.size() ? proof.changes[i] : Change());
    }
    for (const IdComparison& ids : evidence.ids) text += FormatIdsLine(ids, evidence.sides);
  }
  for (const Refusal& refusal : proof.refused) text += RefusalText(refusal);
  return text + ChangedLine(proof);
}

std::string FormatProofText(const Proof& proof) {
  return FormatProofBody(proof) + FormatProofVerdict(proof);
}

std::string FormatProofJson(const Proof& proof) {
  ordered_json json;
  json["exit_status"] = proof.exit_status;
  std::string verdict = FormatProofVerdict(proof);
  verdict.pop_back();
  json["verdict"] = verdict;
  json["base"] = SideJson(proof.base);
  json["here"] = SideJson(proof.here);
  json["require"] = RequiredParts(proof);
  json["allow"] = Names(proof.allow);
  json["kinds"] = Names(proof.kinds);
  json["not_allowed"] = Names(proof.not_allowed);
  json["refused"] = ordered_json::array();
  for (const Refusal& refusal : proof.refused) {
    json["refused"].push_back({{"by", refusal.by},
                               {"reason", refusal.reason},
                               {"log", refusal.log},
                               {"log_tail", refusal.log_tail}});
  }
  json["changes"] = ordered_json::array();
  for (size_t i = 0; i < proof.changes.size(); ++i) {
    json["changes"].push_back(ChangeJson(proof.evidence->depths[i].depth, proof.changes[i]));
  }
  json["evidence"] =
      proof.evidence ? ordered_json::parse(FormatEvidenceJson(*proof.evidence)) : ordered_json();
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::prove
