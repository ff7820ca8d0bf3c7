#include "llm/tokenizer/pre_tokenizer.h"

#include <cstdint>
#include <optional>

#include "llm/tokenizer/unicode_class.h"

namespace assay::llm {
namespace {

// A character with its class and where the one after it begins.
struct Char {
  uint32_t code_point;
  CharClass char_class;
  size_t end;

  bool Is(CharClass wanted) const { return char_class == wanted; }
  bool IsNewline() const { return code_point == '\r' || code_point == '\n'; }
};

// Nothing at the end of the text.
std::optional<Char> CharAt(std::string_view text, size_t offset) {
  if (offset >= text.size()) return std::nullopt;
  const DecodedChar decoded = DecodeAt(text, offset);
  return Char{decoded.code_point, ClassOf(decoded.code_point), offset + decoded.length};
}

// The end of the characters from `offset` on that are of `wanted`.
size_t SkipClass(std::string_view text, size_t offset, CharClass wanted) {
  for (auto c = CharAt(text, offset); c && c->Is(wanted); c = CharAt(text, offset)) {
    offset = c->end;
  }
  return offset;
}

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// 0 where `text` begins with no contraction.
size_t ContractionLength(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const char first = LowerAscii(text[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (text.size() < 3) return 0;
  const char second = LowerAscii(text[2]);
  const bool two_letters = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                           (first == 'l' && second == 'l');
  return two_letters ? 3 : 0;
}

// `text` begins with white space and no other alternative took it.
size_t SpaceLength(std::string_view text) {
  size_t end = 0;
  size_t last_begin = 0;
  size_t after_newline = 0;
  for (auto c = CharAt(text, 0); c && c->Is(CharClass::kSpace); c = CharAt(text, end)) {
    last_begin = end;
    end = c->end;
    if (c->IsNewline()) after_newline = end;
  }
  if (after_newline > 0) return after_newline;
  // Before a word the last space is left for it; a lone space is a piece of its own.
  const bool word_follows = end < text.size();
  return word_follows && last_begin > 0 ? last_begin : end;
}

}  // namespace

size_t NextPieceLength(std::string_view text) {
  if (const size_t length = ContractionLength(text); length > 0) return length;
  const Char first = *CharAt(text, 0);
  const auto second = CharAt(text, first.end);
  if (first.Is(CharClass::kLetter)) return SkipClass(text, first.end, CharClass::kLetter);
  if (first.Is(CharClass::kNumber)) return first.end;
  if (!first.IsNewline() && second && second->Is(CharClass::kLetter)) {
    return SkipClass(text, second->end, CharClass::kLetter);
  }
  const bool spaced = first.code_point == ' ' && second && second->Is(CharClass::kOther);
  if (spaced || first.Is(CharClass::kOther)) {
    size_t end = SkipClass(text, spaced ? second->end : first.end, CharClass::kOther);
    while (end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
    return end;
  }
  return SpaceLength(text);
}

}  // namespace assay::llm
