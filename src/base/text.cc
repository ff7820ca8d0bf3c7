#include "base/text.h"

#include <array>

namespace assay {

CodePoint DecodeCodePoint(std::string_view text, size_t at) {
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

bool MustEscape(const CodePoint& point) {
  const uint32_t value = point.value;
  return !point.valid || value < 0x20 || (value >= 0x7F && value <= 0x9F) || value == 0x061C ||
         (value >= 0x200B && value <= 0x200F) || (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2060 && value <= 0x206F) || value == 0xFEFF;
}

void AppendEscaped(std::string* out, std::string_view text, std::string_view also) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeCodePoint(text, at);
    const std::string_view bytes = text.substr(at, point.bytes);
    at += point.bytes;
    if (!MustEscape(point)) {
      if (bytes.size() == 1 && also.find(bytes[0]) != std::string_view::npos) *out += '\\';
      *out += bytes;
      continue;
    }
    for (const char c : bytes) {
      const auto value = static_cast<unsigned char>(c);
      *out += "\\x";
      *out += kHexDigits[value >> 4];
      *out += kHexDigits[value & 15];
    }
  }
}

std::string Printable(std::string_view text) {
  std::string out;
  AppendEscaped(&out, text);
  return out;
}

std::string Quoted(std::string_view text, size_t max_bytes) {
  const std::string_view shown = Beginning(text, max_bytes);
  std::string out = "\"";
  AppendEscaped(&out, shown, "\"\\");
  out += shown.size() < text.size() ? "...\"" : "\"";
  return out;
}

std::string_view Beginning(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

}  // namespace assay
