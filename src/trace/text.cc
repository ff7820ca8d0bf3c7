#include "trace/text.h"

#include <array>
#include <cstdint>

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

// One code point of `text`, or the one byte that begins none.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 1;
  bool valid = false;
};

CodePoint Decode(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return {};
  uint32_t value = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || value > 0x10FFFF || surrogate) return {};
  return {value, length, true};
}

// True for code points that programs take for the end of a line, a change of direction or a mark
// that is not shown: a line that holds one would not look like what it is.
bool IsUnsafe(uint32_t value) {
  return value < 0x20 || (value >= 0x7F && value <= 0x9F) || value == 0x061C ||
         (value >= 0x200B && value <= 0x200F) || (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2060 && value <= 0x206F) || value == 0xFEFF;
}

bool MustEscape(const CodePoint& point) { return !point.valid || IsUnsafe(point.value); }

void AppendByteEscape(std::string* out, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  *out += "\\x";
  *out += kHexDigits[value >> 4];
  *out += kHexDigits[value & 15];
}

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
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = Decode(bytes, at);
    if (MustEscape(point)) {
      for (size_t i = 0; i < point.bytes; ++i) AppendByteEscape(out, bytes[at + i]);
    } else {
      if (point.value == '"' || point.value == '\\') *out += '\\';
      out->append(bytes, at, point.bytes);
    }
    at += point.bytes;
  }
  *out += '"';
}

std::string Printable(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = Decode(bytes, at);
    if (MustEscape(point)) {
      for (size_t i = 0; i < point.bytes; ++i) AppendByteEscape(&out, bytes[at + i]);
    } else {
      out.append(bytes, at, point.bytes);
    }
    at += point.bytes;
  }
  return out;
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
    const CodePoint point = Decode(text, at);
    if (!point.valid) return {at, "The line is not UTF-8 here."};
    if (IsUnsafe(point.value)) return {at, "A control character must be escaped as \\xhh."};
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
