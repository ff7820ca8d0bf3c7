#include "compare/difference_log.h"

#include <utility>

#include <fmt/format.h>

namespace assay::compare {

void PlaceTracker::Pass(std::string_view line) {
  ++line_;
  if (line == "begin") {
    ++command_buffers_;
    inside_ = true;
    dispatches_ = 0;
  } else if (line == "commit") {
    inside_ = false;
  } else if (IsDispatchLine(line)) {
    ++dispatches_;
  }
}

Place PlaceTracker::Take(std::string_view line) {
  const bool was_inside = inside_;
  Pass(line);
  Place place;
  place.line = line_;
  // Both begin and commit belong to their command buffer.
  place.command_buffer = was_inside || inside_ ? command_buffers_ : 0;
  place.dispatch = IsDispatchLine(line) ? dispatches_ : 0;
  place.kernel = KernelOf(line, declarations_);
  place.text = line;
  return place;
}

void DifferenceLog::Equal(Lines a, Lines b) {
  if (!Wanted()) return;
  for (const std::string_view line : a) place_a_.Pass(line);
  for (const std::string_view line : b) place_b_.Pass(line);
}

void DifferenceLog::EqualBytes(std::string_view lines) {
  if (!Wanted()) return;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    place_a_.Pass(line);
    place_b_.Pass(line);
    lines.remove_prefix(line.size() + 1);
  }
}

void DifferenceLog::Unlike(Lines a, Lines b) {
  size_t i = 0, j = 0;
  const auto only_up_to = [&](size_t a_end, size_t b_end) {
    for (; i < a_end; ++i) OnlyInA(a[i]);
    for (; j < b_end; ++j) OnlyInB(b[j]);
  };
  for (const auto& [changed_a, changed_b] : PairChanged(a, b, names_)) {
    only_up_to(changed_a, changed_b);
    Changed(a[i++], b[j++]);
  }
  only_up_to(a.size(), b.size());
}

void DifferenceLog::SameButForNumber(std::string_view line_a, std::string_view line_b) {
  const bool declares = (IsBufferLine(line_a) && IsBufferLine(line_b)) ||
                        (IsKernelLine(line_a) && IsKernelLine(line_b));
  LineName name_a, name_b;
  if (!declares || !LineNames(line_a).Next(&name_a) || !LineNames(line_b).Next(&name_b) ||
      name_a.number == name_b.number) {
    return Equal(Lines(&line_a, 1), Lines(&line_b, 1));
  }
  ++report_.counts.changed;
  if (!Wanted()) return;
  Difference difference;
  difference.kind = Difference::Kind::kChanged;
  difference.a = place_a_.Take(line_a);
  difference.b = place_b_.Take(line_b);
  difference.field = "number";
  const char mark = name_a.is_kernel ? 'k' : '#';
  difference.value_a = fmt::format("{}{}", mark, name_a.number);
  difference.value_b = fmt::format("{}{}", mark, name_b.number);
  Keep(std::move(difference));
}

void DifferenceLog::OnlyInA(std::string_view line) {
  ++report_.counts.only_in_a;
  if (!Wanted()) return;
  Difference difference;
  difference.kind = Difference::Kind::kOnlyInA;
  difference.a = place_a_.Take(line);
  Keep(std::move(difference));
}

void DifferenceLog::OnlyInB(std::string_view line) {
  ++report_.counts.only_in_b;
  if (!Wanted()) return;
  Difference difference;
  difference.kind = Difference::Kind::kOnlyInB;
  difference.b = place_b_.Take(line);
  Keep(std::move(difference));
}

void DifferenceLog::Changed(std::string_view line_a, std::string_view line_b) {
  ++report_.counts.changed;
  if (alike_a_(line_a) == alike_b_(line_b)) ++doubtful_;
  if (!Wanted()) return;
  Difference difference;
  difference.kind = Difference::Kind::kChanged;
  difference.a = place_a_.Take(line_a);
  difference.b = place_b_.Take(line_b);
  FieldDifference found = FirstDifference(line_a, line_b, names_);
  difference.field = std::move(found.field);
  difference.value_a = std::move(found.value_a);
  difference.value_b = std::move(found.value_b);
  Keep(std::move(difference));
}

void DifferenceLog::Keep(Difference difference) {
  const std::string& line = difference.a.line > 0 ? difference.a.text : difference.b.text;
  if (!event_seen_ && !line.starts_with("meta ")) {
    event_seen_ = true;
    if (report_.counts.changed + report_.counts.only_in_a + report_.counts.only_in_b > 1) {
      report_.first_event = difference;
    }
  }
  if (report_.differences.size() < max_differences_) {
    report_.differences.push_back(std::move(difference));
  }
}

}  // namespace assay::compare
