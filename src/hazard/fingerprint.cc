#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "assay/hazard.h"

namespace assay::hazard {
namespace {

constexpr size_t kIdentityDigits = 16;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool ParseWhole(std::string_view text, int base, uint64_t* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value, base);
  return error == std::errc() && stop == end;
}

std::optional<Fingerprint> ParseFingerprint(std::string_view text) {
  if (text.size() < kIdentityDigits + 2 || text[kIdentityDigits] != ':') return std::nullopt;
  Fingerprint fingerprint;
  if (!ParseWhole(text.substr(0, kIdentityDigits), 16, &fingerprint.identity)) return std::nullopt;
  const std::string_view occurrence = text.substr(kIdentityDigits + 1);
  if (occurrence == "*") return fingerprint;
  if (!ParseWhole(occurrence, 10, &fingerprint.occurrence)) return std::nullopt;
  if (fingerprint.occurrence == 0) return std::nullopt;
  return fingerprint;
}

}  // namespace

std::string FormatFingerprint(const Fingerprint& fingerprint) {
  if (fingerprint.occurrence == 0) return fmt::format("{:016x}:*", fingerprint.identity);
  return fmt::format("{:016x}:{}", fingerprint.identity, fingerprint.occurrence);
}

Result<std::vector<Fingerprint>> ParseSuppressions(std::string_view text, std::string_view name) {
  std::vector<Fingerprint> suppressions;
  uint64_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::optional<Fingerprint> fingerprint = ParseFingerprint(line);
    if (!fingerprint) {
      return Fail(ErrorCode::kFormat, std::string(name),
                  fmt::format("\"{}\", line {}: expected a fingerprint such as "
                              "\"0123456789abcdef:1\" or \"0123456789abcdef:*\", but the line is "
                              "{} bytes of something else.",
                              name, line_number, line.size()));
    }
    suppressions.push_back(*fingerprint);
  }
  return suppressions;
}

}  // namespace assay::hazard
