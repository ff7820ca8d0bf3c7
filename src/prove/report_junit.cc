#include <algorithm>

#include <fmt/format.h>

#include "assay/prove_report.h"

#include "base/text.h"

namespace assay::prove {
namespace {

// Lines for XML: what it cannot hold is written as base/text.h writes it.
std::string Xml(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeCodePoint(text, at);
    const std::string_view bytes = text.substr(at, point.bytes);
    at += point.bytes;
    switch (point.value) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += '\n';
        break;
      case 0xFFFE:
      case 0xFFFF:
        for (const char byte : bytes) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
        }
        break;
      default:
        AppendEscaped(&out, bytes);
    }
  }
  return out;
}

// An attribute's value ends up on one line whatever reads it.
std::string Attribute(std::string_view text) { return Xml(Printable(text)); }

std::string BodyOf(const ReportPart& part) {
  std::string body;
  for (const std::string& change : part.changes) body += change + '\n';
  return body + part.text;
}

std::string TestCase(const Summary& summary, const ReportPart& part) {
  std::string text = fmt::format("    <testcase classname=\"assay.{}\" name=\"{}\"",
                                 summary.command, Attribute(part.name));
  const std::string body = Xml(BodyOf(part));
  const std::string message = Attribute(part.says);
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
      summary.command, counts, Attribute(summary.verdict));
  for (const std::string& side : summary.sides) {
    text += fmt::format("      <property name=\"side\" value=\"{}\"/>\n", Attribute(side));
  }
  text += "    </properties>\n";
  for (const ReportPart& part : summary.parts) text += TestCase(summary, part);
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace assay::prove
