#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/prove.h"
#include "assay/trace.h"

#include "base/counted.h"
#include "base/text.h"
#include "prove/evidence.h"

namespace assay::prove {
namespace {

using compare::Verdict;
using nlohmann::ordered_json;

int StatusOf(Verdict verdict) { return static_cast<int>(verdict); }

// Refused before different before renumbered before identical.
Verdict Worse(Verdict a, Verdict b) {
  const auto rank = [](Verdict verdict) {
    switch (verdict) {
      case Verdict::kRefused:
        return 3;
      case Verdict::kDifferent:
        return 2;
      case Verdict::kRenumbered:
        return 1;
      case Verdict::kIdentical:
        return 0;
    }
    return 3;
  };
  return rank(a) >= rank(b) ? a : b;
}

// A depth that only one folder has makes them different.
Verdict VerdictOf(const DepthComparison& depth) {
  return depth.report ? depth.report->verdict : Verdict::kDifferent;
}

IdComparison CompareIds(int64_t depth, const std::vector<int32_t>& a,
                        const std::vector<int32_t>& b) {
  IdComparison ids;
  ids.depth = depth;
  ids.count_a = a.size();
  ids.count_b = b.size();
  const auto at = [](const std::vector<int32_t>& list, size_t i) {
    return i < list.size() ? std::optional(list[i]) : std::nullopt;
  };
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (at(a, i) == at(b, i)) continue;
    if (ids.differing++ > 0) continue;
    ids.first_index = i;
    ids.first_a = at(a, i);
    ids.first_b = at(b, i);
  }
  return ids;
}

const std::vector<int32_t>* IdsOf(const EvidenceFolder& folder, int64_t depth) {
  for (const IdSequence& sequence : folder.sequences()) {
    if (sequence.depth == depth) return &sequence.ids;
  }
  return nullptr;
}

// Facts that may differ between folders that agree are told, not judged: the traces and the ids
// judge.
std::vector<std::string> NotesOn(const EvidenceFacts& a, const EvidenceFacts& b,
                                 const compare::Sides& sides) {
  std::vector<std::string> notes;
  const auto note = [&](std::string_view what, const std::string& in_a, const std::string& in_b) {
    if (in_a != in_b)
      notes.push_back(fmt::format("{}: {} in {}, {} in {}", what, in_a, sides.a, in_b, sides.b));
  };
  note("command", a.command, b.command);
  note("program version", a.tool_version, b.tool_version);
  note("trace version", fmt::format("{}", a.trace_version), fmt::format("{}", b.trace_version));
  note("model digest", a.model_digest, b.model_digest);
  note("steps", fmt::format("{}", a.steps), fmt::format("{}", b.steps));
  std::set<std::string> options;
  for (const auto& [name, value] : a.command_options) options.insert(name);
  for (const auto& [name, value] : b.command_options) options.insert(name);
  const auto value_of = [](const EvidenceFacts& facts, const std::string& name) {
    const auto found = facts.command_options.find(name);
    if (found == facts.command_options.end()) return std::string("not given");
    // What 0 stands for where it is a flag's default.
    if (found->second == "0" && name == "ctx") return std::string("the model's own");
    if (found->second == "0" && (name == "threads" || name == "loaders")) {
      return std::string("one for each core");
    }
    return found->second;
  };
  for (const std::string& name : options) note(name, value_of(a, name), value_of(b, name));
  return notes;
}

// What the manifest says of a trace must be what the trace says of itself, and there must be
// something that it is evidence of.
Status CheckTrace(const EvidenceFolder& folder, int64_t depth) {
  const std::string path = folder.TracePath(depth);
  const EvidenceFacts& facts = folder.manifest().facts;
  const auto contradicts = [&](std::string_view what, std::string_view manifest,
                               std::string_view trace) {
    return Fail(ErrorCode::kFormat, path,
                fmt::format("The manifest of \"{}\" says {} {}, but \"{}\" says {}.", folder.path(),
                            what, manifest, path, trace));
  };
  ASSAY_ASSIGN_OR_RETURN(const auto reader, trace::TraceReader::Open(path));
  if (reader->version() != facts.trace_version) {
    return contradicts("trace version", fmt::format("{}", facts.trace_version),
                       fmt::format("{}", reader->version()));
  }
  std::map<std::string, std::string> told = {{"depth", fmt::format("{}", depth)},
                                             {"model-digest", facts.model_digest}};
  // Without ids the manifest knows of no steps.
  if (facts.steps != 0) told["steps"] = fmt::format("{}", facts.steps);
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::optional<trace::Event> event, reader->Next());
    if (!event) {
      return Fail(ErrorCode::kFormat, path,
                  fmt::format("\"{}\" holds no dispatch: it proves nothing.", path));
    }
    if (std::holds_alternative<trace::DispatchEvent>(*event)) return {};
    const auto* meta = std::get_if<trace::MetaEvent>(&*event);
    if (meta == nullptr) continue;
    const auto found = told.find(meta->key);
    if (found != told.end() && found->second != meta->value) {
      return contradicts(meta->key, found->second, meta->value);
    }
  }
}

Result<EvidenceFolder> OpenChecked(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(EvidenceFolder folder, EvidenceFolder::Open(path));
  for (const int64_t depth : folder.manifest().depths) ASSAY_TRY(CheckTrace(folder, depth));
  return folder;
}

void AddReason(const std::string& reason, EvidenceReport* report) {
  // A folder compared with itself has one fault, not two.
  if (report->reason.find(reason) != std::string::npos) return;
  if (!report->reason.empty()) report->reason += ' ';
  report->reason += reason;
}

std::string DepthWord(const DepthComparison& depth, const compare::Sides& sides) {
  if (!depth.report) {
    return fmt::format("depth {} only in {}", depth.depth, depth.in_a ? sides.a : sides.b);
  }
  return fmt::format("depth {} rc {}", depth.depth, StatusOf(depth.report->verdict));
}

std::string IdsWord(const EvidenceReport& report) {
  if (report.ids.empty()) return "no ids";
  const uint64_t differing = report.differing_ids();
  return differing == 0 ? std::string("ids equal") : fmt::format("ids differ {}", differing);
}

std::string ShowId(const std::optional<int32_t>& id) {
  return id ? fmt::format("{}", *id) : std::string("none");
}

std::string RcLine(const EvidenceReport& report) {
  if (report.depths.empty()) return fmt::format("compare: rc {}\n", StatusOf(report.verdict));
  std::vector<std::string> words;
  for (const DepthComparison& depth : report.depths)
    words.push_back(DepthWord(depth, report.sides));
  const std::string kernels =
      report.kernels ? fmt::format("kernels rc {}, added {}; ", StatusOf(report.kernels->verdict),
                                   report.kernels->added)
                     : std::string();
  return fmt::format("compare: rc {} ({}trace {}; {})\n", StatusOf(report.verdict), kernels,
                     fmt::join(words, ", "), IdsWord(report));
}

std::string PlainWords(const EvidenceReport& report) {
  const std::string ids = report.ids.empty() ? "there are no ids" : "the ids are equal";
  switch (report.verdict) {
    case Verdict::kIdentical:
      return fmt::format("identical: the traces of {} are the same bytes, and {}\n",
                         Counted(report.depths.size(), "depth"), ids);
    case Verdict::kRenumbered:
      return fmt::format(
          "renumbered: the same but for the numbers of buffers, which is no proof; {}\n", ids);
    case Verdict::kDifferent: {
      std::vector<std::string_view> parts;
      if (report.kernels && report.kernels->verdict == Verdict::kDifferent) {
        parts.emplace_back("kernels");
      }
      for (const DepthComparison& depth : report.depths) {
        if (VerdictOf(depth) != Verdict::kDifferent) continue;
        parts.emplace_back("traces");
        break;
      }
      if (report.differing_ids() > 0) parts.emplace_back("ids");
      return fmt::format("different: {} do not agree{}\n", fmt::join(parts, " and "),
                         report.differing_ids() > 0 ? "" : "; " + ids);
    }
    case Verdict::kRefused:
      return fmt::format("refused: nothing can be said.{}{}\n", report.reason.empty() ? "" : " ",
                         Printable(report.reason));
  }
  return {};
}

// Compares the scans where both folders have one.
void CompareKernels(const EvidenceFolder& a, const EvidenceFolder& b, EvidenceReport* report) {
  const std::string path_a = a.ScanPath();
  const std::string path_b = b.ScanPath();
  if (path_a.empty() && path_b.empty()) return;
  if (path_a.empty() || path_b.empty()) {
    report->notes.push_back(fmt::format("only {} has a kernel scan: the scans were not compared",
                                        path_a.empty() ? report->sides.b : report->sides.a));
    return;
  }
  const Result<Scan> scan_a = ReadScan(path_a);
  const Result<Scan> scan_b = ReadScan(path_b);
  ScanComparison& kernels = report->kernels.emplace();
  if (scan_a && scan_b) {
    kernels = CompareScans(*scan_a, *scan_b, report->sides);
  } else {
    kernels.verdict = Verdict::kRefused;
    kernels.reason = (scan_a ? scan_b : scan_a).error().ToString();
  }
  if (kernels.verdict == Verdict::kRefused) AddReason(kernels.reason, report);
  report->verdict = Worse(report->verdict, kernels.verdict);
}

}  // namespace

EvidenceReport CompareEvidence(const std::string& folder_a, const std::string& folder_b,
                               const compare::Options& options) {
  EvidenceReport report;
  report.sides = options.sides;
  report.name_a = folder_a;
  report.name_b = folder_b;
  const auto a = OpenChecked(folder_a);
  const auto b = OpenChecked(folder_b);
  for (const auto* folder : {&a, &b}) {
    if (*folder) continue;
    report.verdict = Verdict::kRefused;
    AddReason(folder->error().ToString(), &report);
  }
  if (!a || !b) return report;

  report.notes = NotesOn(a->manifest().facts, b->manifest().facts, report.sides);
  CompareKernels(*a, *b, &report);
  const bool ids = !a->sequences().empty() && !b->sequences().empty();
  if (a->sequences().empty() != b->sequences().empty()) {
    report.notes.push_back(fmt::format("only {} has ids: they were not compared",
                                       a->sequences().empty() ? report.sides.b : report.sides.a));
  }
  std::map<int64_t, DepthComparison> depths;
  for (const int64_t depth : a->manifest().depths) depths[depth].in_a = true;
  for (const int64_t depth : b->manifest().depths) depths[depth].in_b = true;
  for (auto& [number, depth] : depths) {
    depth.depth = number;
    if (depth.in_a && depth.in_b) {
      depth.report = compare::CompareTraces(a->TracePath(number), b->TracePath(number), options);
      if (ids) report.ids.push_back(CompareIds(number, *IdsOf(*a, number), *IdsOf(*b, number)));
      if (depth.report->verdict == Verdict::kRefused) {
        AddReason(depth.report->reason, &report);
      }
    }
    report.verdict = Worse(report.verdict, VerdictOf(depth));
    report.depths.push_back(std::move(depth));
  }
  if (report.differing_ids() > 0) report.verdict = Worse(report.verdict, Verdict::kDifferent);
  return report;
}

std::string FormatIdsLine(const IdComparison& ids, const compare::Sides& sides) {
  if (ids.differing == 0)
    return fmt::format("ids at depth {}: equal ({})\n", ids.depth, ids.count_a);
  return fmt::format("ids at depth {}: {} differ, first index {} ({} in {}, {} in {}); {} and {}\n",
                     ids.depth, ids.differing, ids.first_index, ShowId(ids.first_a), sides.a,
                     ShowId(ids.first_b), sides.b, ids.count_a, Counted(ids.count_b, "id"));
}

std::string FormatEvidenceText(const EvidenceReport& report) {
  std::string text;
  for (const std::string& note : report.notes) {
    text += fmt::format("note: {}\n", Printable(note));
  }
  if (report.kernels) text += "== kernels\n" + FormatScanText(*report.kernels);
  for (const DepthComparison& depth : report.depths) {
    text += fmt::format("== depth {}\n", depth.depth);
    text += depth.report
                ? compare::FormatText(*depth.report)
                : fmt::format("only in {}\n", depth.in_a ? report.sides.a : report.sides.b);
  }
  for (const IdComparison& ids : report.ids) text += FormatIdsLine(ids, report.sides);
  return text + RcLine(report) + PlainWords(report);
}

std::string FormatEvidenceJson(const EvidenceReport& report) {
  ordered_json json;
  json["verdict"] = compare::VerdictName(report.verdict);
  json["exit_status"] = StatusOf(report.verdict);
  json["a"] = report.name_a;
  json["b"] = report.name_b;
  json["reason"] = report.reason;
  json["notes"] = report.notes;
  json["kernels"] =
      report.kernels ? ordered_json::parse(FormatScanJson(*report.kernels)) : ordered_json();
  json["traces"] = ordered_json::array();
  for (const DepthComparison& depth : report.depths) {
    ordered_json item = {{"depth", depth.depth}};
    item["in_a"] = depth.in_a;
    item["in_b"] = depth.in_b;
    item["report"] =
        depth.report ? ordered_json::parse(compare::FormatJson(*depth.report)) : ordered_json();
    json["traces"].push_back(std::move(item));
  }
  json["ids"] = ordered_json::array();
  const auto id_json = [](const std::optional<int32_t>& id) {
    return id ? ordered_json(*id) : ordered_json();
  };
  for (const IdComparison& ids : report.ids) {
    ordered_json item = {{"depth", ids.depth}};
    item["equal"] = ids.differing == 0;
    item["count_a"] = ids.count_a;
    item["count_b"] = ids.count_b;
    item["differing"] = ids.differing;
    item["first_index"] = ids.differing > 0 ? ordered_json(ids.first_index) : ordered_json();
    item["first_a"] = id_json(ids.first_a);
    item["first_b"] = id_json(ids.first_b);
    json["ids"].push_back(std::move(item));
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::prove
