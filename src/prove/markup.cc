#include "prove/markup.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace assay::prove {

std::string Markup(std::string_view text) {
  constexpr uint32_t kNotInXml = 0xFFFE;  // And the one behind it.
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeCodePoint(text, at);
    const std::string_view bytes = text.substr(at, point.bytes);
    at += point.bytes;
    if (point.valid && (point.value | 1U) == (kNotInXml | 1U)) {
      for (const char byte : bytes) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      }
    } else if (bytes.find_first_of("&<>\"'") != std::string_view::npos) {
      out += fmt::format("&#{};", point.value);
    } else {
      AppendEscaped(&out, bytes);
    }
  }
  return out;
}

std::string MarkupLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += Markup(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace assay::prove
