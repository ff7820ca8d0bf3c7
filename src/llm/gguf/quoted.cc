#include "llm/gguf/quoted.h"

#include <fmt/format.h>

namespace assay::gguf {

std::string Quoted(std::string_view text) {
  constexpr size_t kShownBytes = 64;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kShownBytes)) {
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  quoted += text.size() > kShownBytes ? "...\"" : "\"";
  return quoted;
}

}  // namespace assay::gguf
