#include "trace/text.h"

#include <array>

#include "base/text.h"

namespace assay::trace {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

constexpr std::array<bool, 256> MakeWordBytes() {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-.+/:,=@")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
constexpr std::array<bool, 256> kWordBytes = MakeWordBytes();

constexpr bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
constexpr bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

bool IsWordByte(char byte) { return kWordBytes[static_cast<unsigned char>(byte)]; }

bool IsWord(std::string_view text) {
  for (const char c : text) {
    if (!IsWordByte(c)) return false;
  }
  return !text.empty();
}

bool IsMetaKey(std::string_view text) {
  for (const char c : text) {
    if (!IsLowerOrDigit(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return !text.empty() && IsLowerOrDigit(text[0]);
}

bool IsHexDigest(std::string_view text) {
  for (const char c : text) {
    if (!IsHexDigit(c)) return false;
  }
  return !text.empty();
}

void AppendQuoted(std::string* out, std::string_view bytes) {
  *out += '"';
  AppendEscaped(out, bytes, "\"\\");
  *out += '"';
}

void AppendText(std::string* out, std::string_view bytes) {
  if (IsWord(bytes)) {
    *out += bytes;
  } else {
    AppendQuoted(out, bytes);
  }
}

QuotedEnd ParseQuoted(std::string_view text, size_t at, std::string* out) {
  out->clear();
  if (at >= text.size() || text[at] != '"') return {at, "A quoted string must begin here."};
  const size_t opening = at++;
  bool escaped_bytes = false;
  while (at < text.size() && text[at] != '"') {
    if (text[at] == '\\') {
      const std::string_view rest = text.substr(at + 1);
      if (!rest.empty() && (rest[0] == '"' || rest[0] == '\\')) {
        *out += rest[0];
        at += 2;
      } else if (rest.size() >= 3 && rest[0] == 'x' && IsHexDigit(rest[1]) && IsHexDigit(rest[2])) {
        *out += static_cast<char>(kHexDigits.find(rest[1]) << 4 | kHexDigits.find(rest[2]));
        at += 4;
        escaped_bytes = true;
      } else {
        return {at, "A backslash must be followed by a backslash, a quote or xhh."};
      }
      continue;
    }
    const CodePoint point = DecodeCodePoint(text, at);
    if (!point.valid) return {at, "The line is not UTF-8 here."};
    if (MustEscape(point)) return {at, "A control character must be escaped as \\xhh."};
    out->append(text, at, point.bytes);
    at += point.bytes;
  }
  if (at >= text.size()) return {at, "The quoted string does not end."};
  ++at;
  if (escaped_bytes) {
    // Bytes escaped one by one may form what need not be escaped, so only writing them again tells.
    std::string canonical;
    AppendQuoted(&canonical, *out);
    if (canonical != text.substr(opening, at - opening)) {
      return {opening, "The quoted string escapes a character that needs no escape."};
    }
  }
  return {at, nullptr};
}

}  // namespace assay::trace
