#include "llm/tokenizer/unicode_class.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace assay::llm {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
  CharClass char_class;
};

constexpr Range kRanges[] = {
#include "llm/tokenizer/unicode_ranges.inc"
};

constexpr CharClass Search(uint32_t code_point) {
  const auto* after = std::ranges::upper_bound(kRanges, code_point, {}, &Range::first);
  if (after == std::begin(kRanges)) return CharClass::kOther;
  const Range& range = *(after - 1);
  return code_point <= range.last ? range.char_class : CharClass::kOther;
}

constexpr std::array<CharClass, 128> kAscii = [] {
  std::array<CharClass, 128> classes{};
  for (uint32_t i = 0; i < classes.size(); ++i) classes[i] = Search(i);
  return classes;
}();

bool IsContinuation(std::string_view text, size_t offset) {
  return offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80;
}

}  // namespace

CharClass ClassOf(uint32_t code_point) {
  return code_point < kAscii.size() ? kAscii[code_point] : Search(code_point);
}

DecodedChar DecodeAt(std::string_view text, size_t offset) {
  const auto first = static_cast<unsigned char>(text[offset]);
  if (first < 0x80) return {first, 1};
  const uint32_t length = first < 0xC2   ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF5 ? 4
                                         : 0;
  if (length == 0) return {kReplacementChar, 1};
  uint32_t code_point = first & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if (!IsContinuation(text, offset + i)) return {kReplacementChar, 1};
    code_point = (code_point << 6) | (static_cast<unsigned char>(text[offset + i]) & 0x3Fu);
  }
  // Forms longer than needed, and past the last code point.
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code_point < kLeast[length] || code_point > 0x10FFFF) return {kReplacementChar, 1};
  return {code_point, length};
}

void AppendUtf8(uint32_t code_point, std::string* text) {
  const auto put = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace assay::llm
