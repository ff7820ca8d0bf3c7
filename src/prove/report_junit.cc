#include <algorithm>

#include <fmt/format.h>

#include "assay/prove_report.h"

#include "prove/markup.h"

namespace assay::prove {
namespace {

std::string BodyOf(const ReportPart& part) {
  std::string body;
  for (const std::string& change : part.changes) body += change + '\n';
  return body + part.text;
}

std::string TestCase(const Summary& summary, const ReportPart& part) {
  std::string text = fmt::format("    <testcase classname=\"assay.{}\" name=\"{}\"",
                                 summary.command, Markup(part.name));
  const std::string body = MarkupLines(BodyOf(part));
  const std::string message = Markup(part.says);
  switch (part.outcome) {
    case Outcome::kSame:
      return text + "/>\n";
    case Outcome::kAllowed:
      text += fmt::format(">\n      <system-out>{}</system-out>\n", body);
      break;
    case Outcome::kDifferent:
      text += fmt::format(">\n      <failure type=\"different\" message=\"{}\">{}</failure>\n",
                          message, body);
      break;
    case Outcome::kRefused:
      text += fmt::format(">\n      <error type=\"refused\" message=\"{}\">{}</error>\n", message,
                          body);
      break;
    case Outcome::kNotAsked:
      text += fmt::format(">\n      <skipped message=\"not required: {}\"/>\n", message);
      break;
  }
  return text + "    </testcase>\n";
}

}  // namespace

std::string FormatJunit(const Summary& summary) {
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(summary.parts, outcome, &ReportPart::outcome);
  };
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", summary.parts.size(),
                  count(Outcome::kDifferent), count(Outcome::kRefused), count(Outcome::kNotAsked));
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"assay {0}\" {1}>\n"
      "  <testsuite name=\"assay {0}\" {1}>\n"
      "    <properties>\n"
      "      <property name=\"verdict\" value=\"{2}\"/>\n",
      summary.command, counts, Markup(summary.verdict));
  for (const std::string& side : summary.sides) {
    text += fmt::format("      <property name=\"side\" value=\"{}\"/>\n", Markup(side));
  }
  text += "    </properties>\n";
  for (const ReportPart& part : summary.parts) text += TestCase(summary, part);
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace assay::prove
