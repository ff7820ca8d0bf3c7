#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "assay/hazard.h"

#include "hazard/describe.h"
#include "hazard/json_lines.h"
#include "hazard/rules.h"

namespace assay::hazard {
namespace {

Json ToJson(const Actor& actor) {
  if (actor.line == 0) return nullptr;
  Json json = {{"line", actor.line}};
  if (actor.command_buffer != 0) {
    json["command_buffer"] = actor.command_buffer;
    json["dispatch"] = actor.dispatch;
    json["kernel"] = std::string(actor.kernel);
  }
  return json;
}

Json ToJson(const Finding& finding) {
  Json json = {{"rule", std::string(RuleName(finding.rule))},
               {"certain", finding.certain},
               {"suppressed", finding.suppressed},
               {"fingerprint", FormatFingerprint(finding.fingerprint)},
               {"first", ToJson(finding.first)},
               {"second", ToJson(finding.second)}};
  if (finding.first_binding != kNoBinding) json["first_binding"] = finding.first_binding;
  if (finding.second_binding != kNoBinding) json["second_binding"] = finding.second_binding;
  if (finding.buffer) {
    json["buffer"] = fmt::format("#{}", finding.buffer->value());
    json["label"] = std::string(finding.label);
    json["buffer_bytes"] = finding.buffer_bytes;
    json["range"] = {finding.range.begin, finding.range.end};
  } else {
    json["buffer"] = nullptr;
  }
  json["message"] = Describe(finding);
  return json;
}

Json ToJson(const RedundantBarrier& barrier) {
  return {{"line", barrier.line},
          {"command_buffer", barrier.command_buffer},
          {"barrier", barrier.barrier},
          {"after_dispatch", barrier.after_dispatch},
          {"fingerprint", FormatFingerprint(barrier.fingerprint)},
          {"suppressed", barrier.suppressed}};
}

Json ToJson(const Suggestion& suggestion) {
  return {{"before", ToJson(suggestion.before)},
          {"closes", suggestion.closes_certain},
          {"closes_possible", suggestion.closes_possible}};
}

Json ToJson(const Fingerprint& fingerprint) { return FormatFingerprint(fingerprint); }

template <typename Element>
void AppendArray(std::string_view name, const std::vector<Element>& elements,
                 JsonObjectLines* out) {
  out->BeginArray(name);
  for (const Element& element : elements) out->Element(ToJson(element));
  out->EndArray();
}

}  // namespace

std::string FormatJson(const Report& report, const Options& options) {
  Json hazards = {{"total", report.hazards()}};
  for (size_t i = 0; i < kHazardCategoryCount; ++i) {
    hazards[std::string(CategoryName(static_cast<Category>(i)))] = report.certain[i];
  }

  JsonObjectLines out;
  out.Member("name", report.name);
  out.Member("version", report.version);
  out.Member("status", ExitStatus(report, options));
  out.Member("refused", report.refused.empty() ? Json(nullptr) : Json(report.refused));
  out.Member("command_buffers", report.command_buffers);
  out.Member("dispatches", report.dispatches);
  out.Member("hazards", hazards);
  out.Member("possible", report.possible);
  out.Member("suppressed", report.suppressed);
  out.Member("notes", report.note_count);
  out.Member("barriers", {{"issued", report.barriers.issued},
                          {"redundant", report.barriers.redundant},
                          {"least", report.barriers.least}});
  AppendArray("findings", report.findings, &out);
  AppendArray("note_findings", report.notes, &out);
  AppendArray("redundant_barriers", report.redundant_barriers, &out);
  out.Member("best_suggestion",
             report.best_suggestion ? ToJson(*report.best_suggestion) : Json(nullptr));
  out.Member("suggestion_count", report.suggestion_count);
  AppendArray("suggestions", report.suggestions, &out);
  AppendArray("unused_suppressions", report.unused_suppressions, &out);
  out.Member("not_seen", std::string(BlindSpots()));
  return std::move(out).Finish() + "\n";
}

}  // namespace assay::hazard
