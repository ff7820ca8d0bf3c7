// CharClass: what the pre-tokenizer needs to know of a character, from Unicode 15.1, and UTF-8
// decoding that gives every byte a place.
#ifndef ASSAY_LLM_TOKENIZER_UNICODE_CLASS_H_
#define ASSAY_LLM_TOKENIZER_UNICODE_CLASS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::llm {

enum class CharClass : uint8_t {
  kOther,   // Marks, punctuation, symbols, controls, unassigned code points.
  kLetter,  // General category L.
  kNumber,  // General category N.
  kSpace,   // Property White_Space.
};
CharClass ClassOf(uint32_t code_point);

struct DecodedChar {
  uint32_t code_point;
  uint32_t length;  // In bytes, at least 1.
};

inline constexpr uint32_t kReplacementChar = 0xFFFD;

// The character at `offset`, which lies inside `text`. A byte that begins no well-formed sequence
// (RFC 3629) is kReplacementChar of length 1; only surrogates pass, as one character each.
DecodedChar DecodeAt(std::string_view text, size_t offset);

// Appends `code_point`, up to 0x10FFFF.
void AppendUtf8(uint32_t code_point, std::string* text);

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_UNICODE_CLASS_H_
