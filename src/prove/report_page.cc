#include <algorithm>

#include <fmt/format.h>

#include "assay/prove_report.h"

#include "prove/aligned_streams.h"
#include "prove/markup.h"
#include "prove/report_assets.h"
#include "prove/report_text.h"

namespace assay::prove {
namespace {

std::string_view OutcomeClass(Outcome outcome) {
  return outcome == Outcome::kNotAsked ? std::string_view("not-required") : OutcomeName(outcome);
}

std::string ContextHtml(const ReportPart& part) {
  if (part.context.empty()) return {};
  std::string lines;
  for (const Change::Line& line : part.context) {
    const std::string_view mark = line.mark == '-'   ? " class=\"minus\""
                                  : line.mark == '+' ? " class=\"plus\""
                                                     : "";
    const auto number = [](uint64_t value) {
      return value == 0 ? std::string() : fmt::format("{}", value);
    };
    lines += fmt::format("<span{}>{} {:>7} {:>7}  {}</span>\n", mark, line.mark,
                         number(line.line_a), number(line.line_b), Markup(Shown(line.text)));
  }
  return fmt::format("<details><summary>the first difference</summary><pre>{}</pre></details>",
                     lines);
}

std::string PartHtml(const ReportPart& part) {
  std::string what;
  if (part.changes.empty()) {
    what = Markup(Shown(part.says));
  } else {
    what = "<ul>";
    for (const std::string& change : part.changes) {
      what += fmt::format("<li>{}</li>", Markup(Shown(change)));
    }
    what += "</ul>";
  }
  what += ContextHtml(part);
  if (!part.text.empty()) {
    what += fmt::format("<details><summary>report</summary><pre>{}</pre></details>",
                        MarkupLines(part.text));
  }
  return fmt::format("<tr><td>{}</td><td><span class=\"chip {}\">{}</span></td><td>{}</td></tr>\n",
                     Markup(part.name), OutcomeClass(part.outcome), OutcomeName(part.outcome),
                     what);
}

// What stands above the streams, readable without the script.
std::string HeadHtml(const Summary& summary) {
  std::string text = fmt::format(
      "<header class=\"top {}\"><div class=\"words\"><h1>{}</h1>\n"
      "<p class=\"verdict\"><code>{}</code></p>\n",
      OutcomeClass(summary.outcome), Markup(summary.headline), Markup(summary.verdict));
  if (!summary.changed.empty()) text += fmt::format("<p>{}</p>\n", Markup(summary.changed));
  text += "<p class=\"sides\">";
  for (const std::string& side : summary.sides)
    text += fmt::format("<span>{}</span> ", Markup(side));
  for (const std::string& note : summary.notes) {
    text += fmt::format("<span>note: {}</span> ", Markup(note));
  }
  text +=
      "</p></div>\n"
      "<button type=\"button\" id=\"theme\" title=\"light, dark, or as the system has it (t)\">"
      "Theme</button></header>\n";
  const bool open = std::ranges::any_of(summary.parts, [](const ReportPart& part) {
    return part.outcome == Outcome::kDifferent || part.outcome == Outcome::kRefused;
  });
  text += fmt::format(
      "<details id=\"parts\"{}><summary>Parts</summary><div class=\"inner\">"
      "<table class=\"parts\"><thead><tr><th scope=\"col\">part</th><th scope=\"col\">outcome</th>"
      "<th scope=\"col\">what</th></tr></thead><tbody>\n",
      open ? " open" : "");
  for (const ReportPart& part : summary.parts) text += PartHtml(part);
  return text + "</tbody></table></div></details>\n";
}

}  // namespace

Result<std::string> FormatHtml(const Summary& summary, const PageOptions& options) {
  const ReportAssets& assets = Assets();
  std::string data = fmt::format("{{\"names\":[{},{}],\"streams\":[", PageString(summary.name_a),
                                 PageString(summary.name_b));
  bool first = true;
  for (const ReportPart& part : summary.parts) {
    if (part.trace_a.empty() || part.trace_b.empty()) continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string stream,
                           AlignedStreamsJson({.name = part.name,
                                               .path_a = part.trace_a,
                                               .path_b = part.trace_b,
                                               .max_rows = options.max_rows,
                                               .stop = options.stop}));
    if (!first) data += ",\n";
    first = false;
    data += stream;
  }
  data += "]}";
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\" data-theme=\"auto\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; "
      "style-src '{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"theme-color\" content=\"\">\n"
      "<title>assay {}: {}</title>\n<style>",
      assets.script_source, assets.style_source, summary.command, Markup(summary.headline));
  page += assets.style;
  page += "</style>\n</head>\n<body>\n";
  page += HeadHtml(summary);
  page += assets.viewer;
  page += "<script type=\"application/json\" id=\"data\">";
  page += data;
  page += "</script>\n<script>";
  page += assets.script;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace assay::prove
