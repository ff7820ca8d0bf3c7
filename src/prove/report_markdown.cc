#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "assay/prove_report.h"

#include "base/counted.h"
#include "base/text.h"
#include "prove/report_text.h"

namespace assay::prove {
namespace {

constexpr size_t kMostBytes = 60'000;
// Of one block of text.
constexpr size_t kMostBlockBytes = 12'000;

// The longest run of backticks in `text`.
size_t LongestTicks(std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char byte : text) {
    run = byte == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// As code, in which nothing has a meaning; a table still ends its cells at a bar.
std::string Code(std::string_view text, bool in_table = false) {
  std::string plain = Printable(text);
  if (plain.empty()) return {};
  const std::string ticks(LongestTicks(plain) + 1, '`');
  const bool pad = plain.front() == '`' || plain.back() == '`';
  if (in_table) {
    std::string escaped;
    for (const char byte : plain) {
      if (byte == '|') escaped += '\\';
      escaped += byte;
    }
    plain = std::move(escaped);
  }
  return fmt::format("{0}{1}{2}{1}{0}", ticks, pad ? " " : "", plain);
}

// Lines in a fence that no line of theirs can close.
std::string Fenced(std::string_view text, std::string_view language) {
  const std::string_view shown = Beginning(text, kMostBlockBytes);
  std::string body(shown);
  if (shown.size() < text.size()) {
    body.resize(body.rfind('\n') == std::string::npos ? body.size() : body.rfind('\n') + 1);
    const auto rest =
        std::count(text.begin() + static_cast<ptrdiff_t>(body.size()), text.end(), '\n');
    body += fmt::format("... and {} more\n", Counted(static_cast<uint64_t>(rest), "line"));
  }
  if (!body.empty() && body.back() != '\n') body += '\n';
  const std::string fence(std::max<size_t>(3, LongestTicks(body) + 1), '`');
  return fmt::format("{}{}\n{}{}\n", fence, language, body, fence);
}

std::string Table(const Summary& summary) {
  std::string text = "| part | outcome | what |\n|---|---|---|\n";
  for (const ReportPart& part : summary.parts) {
    const bool loud = part.outcome == Outcome::kDifferent || part.outcome == Outcome::kRefused;
    std::string what;
    for (const std::string& change : part.changes) {
      what += fmt::format("{}{}", what.empty() ? "" : "<br>", Code(Shown(change), true));
    }
    if (what.empty()) what = Code(Shown(part.says), true);
    text += fmt::format("| {} | {}{}{} | {} |\n", part.name, loud ? "**" : "",
                        OutcomeName(part.outcome), loud ? "**" : "", what);
  }
  return text;
}

std::string Context(const Summary& summary, const ReportPart& part) {
  if (part.context.empty()) return {};
  Change change;
  change.context = part.context;
  change.sides = {summary.name_a, summary.name_b};
  const std::string lines = ContextText(change);
  const size_t heading = lines.find(":\n");
  return fmt::format("\n{}: {}\n\n{}", part.name, lines.substr(0, heading),
                     Fenced(std::string_view(lines).substr(heading + 2), "diff"));
}

std::string Details(const ReportPart& part) {
  return fmt::format("\n<details><summary>{}: {}</summary>\n\n{}\n</details>\n", part.name,
                     OutcomeName(part.outcome), Fenced(part.text, ""));
}

}  // namespace

std::string FormatMarkdown(const Summary& summary) {
  std::string text = fmt::format("**{}**: {}\n\n", summary.headline, Code(summary.verdict));
  for (const std::string& side : summary.sides) text += fmt::format("- {}\n", Code(side));
  for (const std::string& note : summary.notes) text += fmt::format("- note: {}\n", Code(note));
  if (!summary.changed.empty()) text += fmt::format("- {}\n", Code(summary.changed));
  text += fmt::format("\n{}", Table(summary));
  uint64_t left_out = 0;
  const auto add = [&](const std::string& block) {
    if (text.size() + block.size() > kMostBytes) {
      ++left_out;
    } else {
      text += block;
    }
  };
  for (const ReportPart& part : summary.parts) add(Context(summary, part));
  for (const ReportPart& part : summary.parts) {
    // What the table says already is not folded away once more.
    if (!part.text.empty() && part.text != part.says + '\n') add(Details(part));
  }
  if (left_out > 0)
    text += fmt::format("\n{} {} left out for {} length.\n", Counted(left_out, "section"),
                        left_out == 1 ? "was" : "were", left_out == 1 ? "its" : "their");
  return text;
}

}  // namespace assay::prove
