#include "tests/faults/checking.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/record.h"
#include "assay/trace.h"

#include "base/file.h"
#include "gpu/backend.h"
#include "support/trace_text.h"

namespace assay::faults {
namespace {

std::string TextOf(const hazard::Actor& actor) {
  if (actor.dispatch == 0) return "host";
  return fmt::format("{}:{} {}", actor.command_buffer, actor.dispatch, actor.kernel);
}

std::string TextOf(const hazard::Finding& finding) {
  std::string text = finding.certain ? "" : "possible ";
  text += hazard::RuleName(finding.rule);
  if (finding.first.line != 0) text += fmt::format(" {} ->", TextOf(finding.first));
  text += fmt::format(" {}", TextOf(finding.second));
  if (finding.buffer) {
    text += fmt::format(" {}[{},{})", finding.label, finding.range.begin, finding.range.end);
  }
  return text;
}

std::string Check(std::string_view trace, std::string name) {
  const auto report = hazard::CheckTraceText(trace, std::move(name), {});
  return report ? Describe(*report) : report.error().ToString();
}

// The trace of what `program` does on a recording device.
Result<std::string> Record(const Program& program, const Around& around) {
  std::string text;
  ASSAY_ASSIGN_OR_RETURN(const auto writer, trace::TraceWriter::CreateInMemory(&text, {}));
  {
    ASSAY_ASSIGN_OR_RETURN(auto backend, gpu::MakeBackend("null"));
    backend = record::MakeRecordingBackend(std::move(backend), writer.get());
    if (around) backend = around(std::move(backend));
    ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
    ASSAY_TRY(program(*device));
  }
  ASSAY_TRY(writer->Close());
  return text;
}

}  // namespace

std::string Describe(const hazard::Report& report) {
  if (!report.refused.empty()) return report.refused;
  std::vector<std::string> all;
  for (const hazard::Finding& finding : report.findings) all.push_back(TextOf(finding));
  for (const hazard::Finding& note : report.notes)
    all.push_back(fmt::format("note {}", TextOf(note)));
  return fmt::format("{}", fmt::join(all, "; "));
}

std::string CheckLines(std::string_view lines) {
  return Check(testing::Sealed("assay-trace 2\n" + std::string(lines)), "lines");
}

std::string CheckGolden(std::string_view name) {
  const auto text =
      ReadFile(fmt::format("{}/tests/golden/hazard/{}.trace", ASSAY_SOURCE_DIR, name));
  return text ? Check(*text, std::string(name)) : text.error().ToString();
}

std::string CheckProgram(const Program& program, const Around& around) {
  const auto trace = Record(program, around);
  return trace ? Check(*trace, "program") : trace.error().ToString();
}

std::string MutateProgram(const Program& program, size_t shown, const Around& around) {
  const auto trace = Record(program, around);
  if (!trace) return trace.error().ToString();
  const auto report = hazard::MutateTraceText(*trace, "program");
  if (!report) return report.error().ToString();
  if (report->killed == 0) return report->refused;
  const auto& mutants = report->mutants;
  const bool killed = shown <= mutants.size() && mutants[shown - 1].killed();
  return fmt::format("{} of {} killed; {}: {}", report->killed, mutants.size(), shown,
                     killed ? TextOf(*mutants[shown - 1].pair) : "survived");
}

std::string Describe(const Status& status, std::string_view part) {
  if (status) return "";
  const Error& error = status.error();
  if (error.ToString().find(part) == std::string::npos) return error.ToString();
  return fmt::format("{} {}: {}", ErrorCodeName(error.code()), error.subject(), part);
}

}  // namespace assay::faults
