#include "llm/tokenizer/byte_names.h"

#include <array>

#include "llm/tokenizer/unicode_class.h"

namespace assay::llm {
namespace {

constexpr uint32_t kFirstSubstitute = 0x100;
constexpr size_t kSubstitutes = 68;

constexpr bool StandsForItself(uint32_t byte) {
  return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte <= 0xFF && byte != 0xAD);
}

struct Tables {
  std::array<uint32_t, 256> code_point{};
  std::array<uint8_t, kSubstitutes> substituted{};
};

constexpr Tables MakeTables() {
  Tables tables;
  size_t substitutes = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (StandsForItself(byte)) {
      tables.code_point[byte] = byte;
    } else {
      tables.code_point[byte] = kFirstSubstitute + static_cast<uint32_t>(substitutes);
      tables.substituted[substitutes++] = static_cast<uint8_t>(byte);
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

std::string ByteName(uint8_t byte) {
  std::string name;
  AppendUtf8(kTables.code_point[byte], &name);
  return name;
}

std::string DecodeByteNames(std::string_view token) {
  std::string bytes;
  for (size_t offset = 0; offset < token.size();) {
    const DecodedChar c = DecodeAt(token, offset);
    const uint32_t substitute = c.code_point - kFirstSubstitute;
    if (substitute < kSubstitutes) {
      bytes.push_back(static_cast<char>(kTables.substituted[substitute]));
    } else if (StandsForItself(c.code_point)) {
      bytes.push_back(static_cast<char>(c.code_point));
    } else {
      bytes += token.substr(offset, c.length);
    }
    offset += c.length;
  }
  return bytes;
}

}  // namespace assay::llm
