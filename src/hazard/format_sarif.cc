// SARIF 2.1.0: OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "assay/hazard.h"

#include "hazard/describe.h"
#include "hazard/json_lines.h"
#include "hazard/rules.h"

namespace assay::hazard {
namespace {

// A relative or absolute path as the reference that SARIF asks for (section 3.4.3).
std::string ToUri(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json MakeRule(const RuleRow& row) {
  const std::string_view level = row.category == Category::kNote ? "note" : "error";
  return {{"id", std::string(row.name)},
          {"shortDescription", {{"text", std::string(row.title)}}},
          {"help", {{"text", std::string(row.help)}}},
          {"defaultConfiguration", {{"level", std::string(level)}}}};
}

class SarifLocations {
 public:
  explicit SarifLocations(std::string_view trace_name) : uri_(ToUri(trace_name)) {}

  Json At(uint64_t line) const {
    return {{"physicalLocation",
             {{"artifactLocation", {{"uri", uri_}}}, {"region", {{"startLine", line}}}}}};
  }
  Json At(const Actor& actor) const {
    Json location = At(actor.line);
    if (actor.command_buffer != 0) {
      const Json dispatch = {
          {"name", std::string(actor.kernel)},
          {"fullyQualifiedName",
           fmt::format("command buffer {}/dispatch {}", actor.command_buffer, actor.dispatch)}};
      location["logicalLocations"] = Json::array({dispatch});
    }
    return location;
  }

 private:
  std::string uri_;
};

Json MakeResult(Rule rule, std::string_view level, std::string message, Json location,
                const Fingerprint& fingerprint, bool suppressed) {
  Json result = {{"ruleId", std::string(RuleName(rule))},
                 {"ruleIndex", static_cast<int>(rule)},
                 {"level", std::string(level)},
                 {"message", {{"text", std::move(message)}}},
                 {"locations", Json::array({std::move(location)})},
                 {"partialFingerprints", {{"assayHazard/v1", FormatFingerprint(fingerprint)}}}};
  if (suppressed) result["suppressions"] = Json::array({Json{{"kind", "external"}}});
  return result;
}

Json MakeResult(const Finding& finding, const SarifLocations& locations) {
  const std::string_view level = CategoryOf(finding.rule) == Category::kNote ? "note"
                                 : finding.certain                           ? "error"
                                                                             : "warning";
  Json result = MakeResult(finding.rule, level, Describe(finding), locations.At(finding.second),
                           finding.fingerprint, finding.suppressed);
  if (finding.first.line != 0 && finding.first.line != finding.second.line) {
    Json first = locations.At(finding.first);
    first["id"] = 1;
    result["relatedLocations"] = Json::array({std::move(first)});
  }
  result["properties"] = {{"certain", finding.certain}};
  return result;
}

}  // namespace

std::string FormatSarif(const Report& report, const Options& options) {
  const SarifLocations locations(report.name);
  const int status = ExitStatus(report, options);
  Json driver = {{"name", "assay"}, {"semanticVersion", ASSAY_VERSION}};
  for (const RuleRow& row : Rules()) driver["rules"].push_back(MakeRule(row));
  Json invocation = {{"executionSuccessful", report.refused.empty()}, {"exitCode", status}};
  if (!report.refused.empty()) {
    invocation["toolExecutionNotifications"] =
        Json::array({Json{{"level", "error"}, {"message", {{"text", report.refused}}}}});
  }

  JsonObjectLines run;
  run.Member("tool", {{"driver", driver}});
  run.Member("invocations", Json::array({invocation}));
  run.BeginArray("results");
  for (const Finding& finding : report.findings) run.Element(MakeResult(finding, locations));
  for (const Finding& note : report.notes) run.Element(MakeResult(note, locations));
  for (const RedundantBarrier& barrier : report.redundant_barriers) {
    run.Element(MakeResult(Rule::kRedundantBarrier, "note", Describe(barrier),
                           locations.At(barrier.line), barrier.fingerprint, barrier.suppressed));
  }
  run.EndArray();

  JsonObjectLines log;
  log.Member("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  log.Member("version", "2.1.0");
  log.RawMember("runs", fmt::format("[{}]", std::move(run).Finish()));
  return std::move(log).Finish() + "\n";
}

}  // namespace assay::hazard
