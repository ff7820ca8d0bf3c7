#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "assay/prove.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "prove/evidence.h"
#include "trace/text.h"

namespace assay::prove {
namespace {

using compare::Verdict;
using nlohmann::ordered_json;

constexpr std::string_view kMagic = "assay-scan ";
// Far above what a scan writes; a larger file is not ours.
constexpr size_t kMaxScanBytes = size_t{64} << 20;

auto Identity(const ScanRow& row) { return std::tie(row.kernel, row.target); }

std::string FormatCounts(const std::map<std::string, uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, count);
  }
  return text;
}

// The fields of a row behind its kernel's name, in the order of the line.
std::vector<std::pair<std::string, std::string>> FieldsOf(const ScanRow& row) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"target", row.target},
      {"digest", row.digest},
      {"workgroup", fmt::format("{},{},{}", row.workgroup.x, row.workgroup.y, row.workgroup.z)},
      {"shared", fmt::format("{}", row.shared_bytes)},
      {"bindings", fmt::format("{}", row.bindings)},
      {"constants", fmt::format("{}", row.constant_bytes)},
      {"spec", row.spec},
      {"code", row.code_bytes == 0 ? "" : fmt::format("{}", row.code_bytes)},
      {"instructions", FormatCounts(row.instructions)},
      {"figures", FormatCounts(row.figures)},
  };
  std::erase_if(fields, [](const auto& field) { return field.second.empty(); });
  return fields;
}

std::string FormatRow(const ScanRow& row) {
  std::string line = "kernel ";
  trace::AppendText(&line, row.kernel);
  for (const auto& [name, value] : FieldsOf(row)) {
    line += fmt::format(" {}=", name);
    trace::AppendText(&line, value);
  }
  return line;
}

// The next word or quoted string of `line` from `*at` on; false where there is none.
bool TakeText(std::string_view line, size_t* at, std::string* out) {
  if (*at < line.size() && line[*at] == '"') {
    const trace::QuotedEnd end = trace::ParseQuoted(line, *at, out);
    *at = end.next;
    return end.wrong == nullptr;
  }
  const size_t end = std::min(line.find(' ', *at), line.size());
  *out = line.substr(*at, end - *at);
  *at = end;
  return !out->empty();
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && stop == end;
}

bool ParseCounts(std::string_view text, std::map<std::string, uint64_t>* out) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const size_t colon = item.rfind(':');
    uint64_t count = 0;
    if (colon == std::string_view::npos || !ParseNumber(item.substr(colon + 1), &count)) {
      return false;
    }
    (*out)[std::string(item.substr(0, colon))] = count;
    text.remove_prefix(std::min(item.size() + 1, text.size()));
  }
  return true;
}

bool ParseExtent(std::string_view text, Extent3* out) {
  const size_t first = text.find(',');
  const size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  if (second == std::string_view::npos) return false;
  return ParseNumber(text.substr(0, first), &out->x) &&
         ParseNumber(text.substr(first + 1, second - first - 1), &out->y) &&
         ParseNumber(text.substr(second + 1), &out->z);
}

bool SetField(ScanRow* row, std::string_view name, const std::string& value) {
  if (name == "target") row->target = value;
  if (name == "digest") row->digest = value;
  if (name == "spec") row->spec = value;
  if (name == "target" || name == "digest" || name == "spec") return true;
  if (name == "workgroup") return ParseExtent(value, &row->workgroup);
  if (name == "shared") return ParseNumber(value, &row->shared_bytes);
  if (name == "bindings") return ParseNumber(value, &row->bindings);
  if (name == "constants") return ParseNumber(value, &row->constant_bytes);
  if (name == "code") return ParseNumber(value, &row->code_bytes);
  if (name == "instructions") return ParseCounts(value, &row->instructions);
  if (name == "figures") return ParseCounts(value, &row->figures);
  return false;
}

bool ParseRow(std::string_view line, ScanRow* row) {
  size_t at = 0;
  if (!TakeText(line, &at, &row->kernel)) return false;
  while (at < line.size()) {
    const size_t equals = line.find('=', at);
    if (line[at] != ' ' || equals == std::string_view::npos) return false;
    const std::string_view name = line.substr(at + 1, equals - at - 1);
    at = equals + 1;
    std::string value;
    if (!TakeText(line, &at, &value) || !SetField(row, name, value)) return false;
  }
  return trace::IsHexDigest(row->digest) && !row->target.empty();
}

std::string FormatBody(const Scan& scan) {
  std::string text = fmt::format("{}{}\nmethod ", kMagic, kScanVersion);
  trace::AppendText(&text, scan.method);
  text += '\n';
  if (!scan.failed.empty()) {
    text += "failed ";
    trace::AppendQuoted(&text, scan.failed);
    return text + '\n';
  }
  std::vector<const ScanRow*> rows;
  for (const ScanRow& row : scan.rows) rows.push_back(&row);
  std::ranges::sort(rows,
                    [](const ScanRow* a, const ScanRow* b) { return Identity(*a) < Identity(*b); });
  for (const ScanRow* row : rows) text += FormatRow(*row) + '\n';
  return text;
}

// The method word, or the reason, that `line` gives behind `key`; false when it does not.
bool ParseTextLine(std::string_view line, std::string_view key, std::string* out) {
  if (!line.starts_with(key)) return false;
  size_t at = key.size();
  return TakeText(line, &at, out) && at == line.size();
}

void CompareRows(const ScanRow& a, const ScanRow& b, ScanComparison* result) {
  const auto fields_a = FieldsOf(a);
  const auto fields_b = FieldsOf(b);
  if (fields_a == fields_b) {
    ++result->same;
    return;
  }
  ++result->changed;
  ScanDifference difference{ScanDifference::Kind::kChanged, a.kernel, a.target, {}, {}, {}};
  const auto value_in = [](const auto& fields, const std::string& name) {
    for (const auto& [key, value] : fields) {
      if (key == name) return value;
    }
    return std::string("none");
  };
  std::vector<std::string> names;
  for (const auto* fields : {&fields_a, &fields_b}) {
    for (const auto& [name, value] : *fields) names.push_back(name);
  }
  for (const std::string& name : names) {
    difference.value_a = value_in(fields_a, name);
    difference.value_b = value_in(fields_b, name);
    difference.field = name;
    if (difference.value_a != difference.value_b) break;
  }
  result->differences.push_back(std::move(difference));
}

std::string_view KindName(ScanDifference::Kind kind) {
  switch (kind) {
    case ScanDifference::Kind::kAdded:
      return "added";
    case ScanDifference::Kind::kRemoved:
      return "removed";
    case ScanDifference::Kind::kChanged:
      return "changed";
  }
  return "";
}

}  // namespace

std::string FormatScan(const Scan& scan) {
  std::string text = FormatBody(scan);
  const size_t rows = scan.failed.empty() ? scan.rows.size() : 0;
  return text + fmt::format("end rows={} digest={}\n", rows, HexDigest(text));
}

Result<Scan> ParseScan(std::string_view text, std::string_view name) {
  const auto fault = [&](size_t line, std::string_view what) {
    return Fail(ErrorCode::kFormat, std::string(name),
                fmt::format("\"{}\" line {}: {}", name, line, what));
  };
  if (text.size() > kMaxScanBytes || !text.starts_with(kMagic)) {
    return fault(1, "This is no kernel scan; the first line of one is \"assay-scan 1\".");
  }
  Scan scan;
  bool ended = false;
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty() && !ended;) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    ++number;
    if (end == std::string_view::npos) return fault(number, "The scan is cut short.");
    rest.remove_prefix(end + 1);
    if (number == 1) {
      if (line.substr(kMagic.size()) == fmt::format("{}", kScanVersion)) continue;
      return Fail(
          ErrorCode::kUnsupported, std::string(name),
          fmt::format("\"{}\" is a kernel scan of version {}; this program reads version {}.", name,
                      Printable(line.substr(kMagic.size())), kScanVersion));
    }
    if (number == 2) {
      if (!ParseTextLine(line, "method ", &scan.method)) {
        return fault(number, "\"method WORD\" must stand here.");
      }
    } else if (line.starts_with("kernel ")) {
      ScanRow& row = scan.rows.emplace_back();
      if (!ParseRow(line.substr(7), &row)) return fault(number, "The row is not well formed.");
    } else if (line.starts_with("end ")) {
      ended = true;
    } else if (!ParseTextLine(line, "failed ", &scan.failed)) {
      return fault(number, "A row begins with \"kernel\".");
    }
  }
  if (!ended) return fault(number, "The scan has no end line: it is cut short.");
  for (size_t i = 1; i < scan.rows.size(); ++i) {
    if (Identity(scan.rows[i - 1]) < Identity(scan.rows[i])) continue;
    return fault(i + 3, "Rows must stand once each, sorted by kernel and target.");
  }
  // There is one form of every scan, so count, digest and the form of each field are checked by
  // writing it again.
  if (FormatScan(scan) != text) {
    return fault(number,
                 "The scan is not the one that was written: its count, its digest or the "
                 "form of a field is wrong.");
  }
  return scan;
}

Result<Scan> ReadScan(const std::string& path) {
  std::error_code ignored;
  std::string file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    ASSAY_ASSIGN_OR_RETURN(const EvidenceFolder folder, EvidenceFolder::Open(path));
    file = folder.ScanPath();
    if (file.empty()) {
      return Fail(ErrorCode::kNotFound, path,
                  fmt::format("The evidence in \"{}\" holds no kernel scan.", path));
    }
  }
  ASSAY_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(file));
  return ParseScan(mapped.text(), file);
}

ScanComparison CompareScans(const Scan& a, const Scan& b, const compare::Sides& sides) {
  ScanComparison result;
  result.sides = sides;
  const auto refuse = [&result](const std::string& reason) {
    if (!result.reason.empty()) result.reason += ' ';
    result.reason += reason;
    result.verdict = Verdict::kRefused;
  };
  if (!a.failed.empty()) refuse(fmt::format("The kernel scan of {} failed: {}", sides.a, a.failed));
  if (!b.failed.empty()) refuse(fmt::format("The kernel scan of {} failed: {}", sides.b, b.failed));
  if (a.method != b.method) {
    refuse(
        fmt::format("The digests of {} are made by the method {} and those of {} by {}: kernels "
                    "compare within one method, and so within one backend.",
                    sides.a, a.method, sides.b, b.method));
  }
  if (result.verdict == Verdict::kRefused) return result;
  std::map<std::pair<std::string, std::string>, std::pair<const ScanRow*, const ScanRow*>> rows;
  for (const ScanRow& row : a.rows) rows[{row.kernel, row.target}].first = &row;
  for (const ScanRow& row : b.rows) rows[{row.kernel, row.target}].second = &row;
  for (const auto& [identity, pair] : rows) {
    if (pair.first != nullptr && pair.second != nullptr) {
      CompareRows(*pair.first, *pair.second, &result);
      continue;
    }
    const bool added = pair.first == nullptr;
    ++(added ? result.added : result.removed);
    result.differences.push_back(
        {added ? ScanDifference::Kind::kAdded : ScanDifference::Kind::kRemoved,
         identity.first,
         identity.second,
         {},
         {},
         {}});
  }
  if (!result.differences.empty()) result.verdict = Verdict::kDifferent;
  return result;
}

std::string FormatScanSummary(const ScanComparison& comparison) {
  if (comparison.verdict == Verdict::kRefused) {
    return fmt::format("refused: nothing can be said. {}\n", Printable(comparison.reason));
  }
  return fmt::format("summary: added={} removed={} changed={} same={}\n", comparison.added,
                     comparison.removed, comparison.changed, comparison.same);
}

std::string FormatScanText(const ScanComparison& comparison) {
  std::string text;
  for (const ScanDifference& difference : comparison.differences) {
    text += fmt::format("{}: {} ({})", KindName(difference.kind), Printable(difference.kernel),
                        Printable(difference.target));
    if (difference.kind == ScanDifference::Kind::kChanged) {
      text += fmt::format(": {} is {} in {} and {} in {}", difference.field,
                          Printable(difference.value_a), comparison.sides.a,
                          Printable(difference.value_b), comparison.sides.b);
    }
    text += '\n';
  }
  return text + FormatScanSummary(comparison);
}

std::string FormatScanJson(const ScanComparison& comparison) {
  ordered_json json;
  json["verdict"] = compare::VerdictName(comparison.verdict);
  json["exit_status"] = static_cast<int>(comparison.verdict);
  json["reason"] = comparison.reason;
  json["counts"] = {{"added", comparison.added},
                    {"removed", comparison.removed},
                    {"changed", comparison.changed},
                    {"same", comparison.same}};
  json["differences"] = ordered_json::array();
  for (const ScanDifference& difference : comparison.differences) {
    ordered_json item = {{"kind", KindName(difference.kind)}};
    item["kernel"] = difference.kernel;
    item["target"] = difference.target;
    if (difference.kind == ScanDifference::Kind::kChanged) {
      item["field"] = difference.field;
      item["value_a"] = difference.value_a;
      item["value_b"] = difference.value_b;
    }
    json["differences"].push_back(std::move(item));
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::prove
