#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "assay/compare.h"

#include "base/counted.h"
#include "base/text.h"

namespace assay::compare {
namespace {

using nlohmann::ordered_json;

// More of a line than this is not shown to people.
constexpr size_t kShownBytes = 1000;

// Traces that break the format, names of files and manifests may hold anything.
std::string Printable(std::string_view text) {
  std::string out = assay::Printable(text.substr(0, kShownBytes));
  if (text.size() > kShownBytes) out += "...";
  return out;
}

// "command buffer 3, dispatch 12 (rms_norm_f32)", "command buffer 3, line 40 (barrier)" or "line 17
// (buffer)"; with `side`, "... of A (...)".
std::string WhereIs(const Place& place, std::string_view side = "") {
  std::string where;
  if (place.command_buffer > 0) where = fmt::format("command buffer {}, ", place.command_buffer);
  where += place.dispatch > 0 ? fmt::format("dispatch {}", place.dispatch)
                              : fmt::format("line {}", place.line);
  if (!side.empty()) where += fmt::format(" of {}", side);
  const std::string_view word = std::string_view(place.text).substr(0, place.text.find(' '));
  return where + fmt::format(" ({})", Printable(place.kernel.empty() ? word : place.kernel));
}

std::string HeaderOf(const Difference& difference, const Sides& sides) {
  switch (difference.kind) {
    case Difference::Kind::kChanged:
      return fmt::format("{}: {} is {} in {} and {} in {}", WhereIs(difference.a), difference.field,
                         Printable(difference.value_a), sides.a, Printable(difference.value_b),
                         sides.b);
    case Difference::Kind::kOnlyInA:
      return fmt::format("{}: not in {}", WhereIs(difference.a, sides.a), sides.b);
    case Difference::Kind::kOnlyInB:
      return fmt::format("{}: not in {}", WhereIs(difference.b, sides.b), sides.a);
  }
  return {};
}

// True when `next` goes on with the same stretch of lines that only one side has.
bool Continues(const Difference& last, const Difference& next) {
  if (last.kind != next.kind || last.kind == Difference::Kind::kChanged) return false;
  return next.a.line == last.a.line + (last.a.line > 0 ? 1 : 0) &&
         next.b.line == last.b.line + (last.b.line > 0 ? 1 : 0);
}

uint64_t Total(const Counts& counts) {
  return counts.changed + counts.only_in_a + counts.only_in_b;
}

ordered_json PlaceJson(const Place& place) {
  if (place.line == 0) return nullptr;
  ordered_json json = {{"line", place.line}};
  json["command_buffer"] = place.command_buffer;
  json["dispatch"] = place.dispatch;
  json["kernel"] = place.kernel;
  json["text"] = place.text;
  return json;
}

ordered_json DifferenceJson(const Difference& difference) {
  ordered_json json;
  switch (difference.kind) {
    case Difference::Kind::kChanged:
      json["kind"] = "changed";
      json["field"] = difference.field;
      json["value_a"] = difference.value_a;
      json["value_b"] = difference.value_b;
      break;
    case Difference::Kind::kOnlyInA:
      json["kind"] = "only-in-a";
      break;
    case Difference::Kind::kOnlyInB:
      json["kind"] = "only-in-b";
      break;
  }
  json["a"] = PlaceJson(difference.a);
  json["b"] = PlaceJson(difference.b);
  return json;
}

ordered_json SideJson(const std::string& name, int version, uint64_t lines) {
  return {{"name", name}, {"version", version}, {"lines", lines}};
}

}  // namespace

std::string FormatVerdict(const Report& report) {
  switch (report.verdict) {
    case Verdict::kIdentical:
      return fmt::format("identical: the same bytes, {}, digest {}",
                         Counted(report.lines_a, "line"), report.digest);
    case Verdict::kRenumbered:
      return fmt::format(
          "renumbered: the same but for the numbers of buffers, {} of {} renumbered; this "
          "is no proof",
          report.buffers_renumbered, Counted(report.buffers, "buffer"));
    case Verdict::kRefused:
      return fmt::format("refused: nothing can be said.{}{}", report.reason.empty() ? "" : " ",
                         Printable(report.reason));
    case Verdict::kDifferent: {
      const Counts& counts = report.counts;
      std::string text =
          fmt::format("different: {} changed, {} only in {}, {} only in {}", counts.changed,
                      counts.only_in_a, report.sides.a, counts.only_in_b, report.sides.b);
      if (!report.differences.empty()) {
        text += fmt::format("; the first: {}", HeaderOf(report.differences.front(), report.sides));
      }
      if (report.first_event) {
        text += fmt::format("; the first event: {}", HeaderOf(*report.first_event, report.sides));
      }
      return text;
    }
  }
  return {};
}

std::string FormatText(const Report& report) {
  std::string text;
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", Printable(note));
  if (report.verdict == Verdict::kDifferent) {
    text += fmt::format("--- {}: {} (version {}, {})\n", report.sides.a, Printable(report.name_a),
                        report.version_a, Counted(report.lines_a, "line"));
    text += fmt::format("+++ {}: {} (version {}, {})\n", report.sides.b, Printable(report.name_b),
                        report.version_b, Counted(report.lines_b, "line"));
  }
  const Difference* last = nullptr;
  for (const Difference& difference : report.differences) {
    if (last == nullptr || !Continues(*last, difference)) {
      text += fmt::format("@ {}\n", HeaderOf(difference, report.sides));
    }
    if (difference.a.line > 0) {
      text += fmt::format("- {}: {}\n", difference.a.line, Printable(difference.a.text));
    }
    if (difference.b.line > 0) {
      text += fmt::format("+ {}: {}\n", difference.b.line, Printable(difference.b.text));
    }
    last = &difference;
  }
  const uint64_t total = Total(report.counts);
  if (total > report.differences.size()) {
    text += fmt::format("... and {} more\n", total - report.differences.size());
  }
  return text + FormatVerdict(report) + "\n";
}

std::string FormatJson(const Report& report) {
  ordered_json json;
  json["verdict"] = VerdictName(report.verdict);
  json["exit_status"] = static_cast<int>(report.verdict);
  json["a"] = SideJson(report.name_a, report.version_a, report.lines_a);
  json["b"] = SideJson(report.name_b, report.version_b, report.lines_b);
  json["digest"] = report.digest;
  json["reason"] = report.reason;
  json["notes"] = report.notes;
  json["buffers"] = report.buffers;
  json["buffers_renumbered"] = report.buffers_renumbered;
  json["counts"] = {{"changed", report.counts.changed},
                    {"only_in_a", report.counts.only_in_a},
                    {"only_in_b", report.counts.only_in_b}};
  json["differences"] = ordered_json::array();
  for (const Difference& difference : report.differences) {
    json["differences"].push_back(DifferenceJson(difference));
  }
  if (report.first_event) json["first_event"] = DifferenceJson(*report.first_event);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::compare
