// Vocabulary: the tokenizer.ggml.* keys of a model file, checked.
#ifndef ASSAY_LLM_TOKENIZER_VOCABULARY_H_
#define ASSAY_LLM_TOKENIZER_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assay/llm.h"

#include "llm/tokenizer/bpe.h"

namespace assay::llm {

// ggml's numbers in tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,       // Text in byte names.
  kUnknown = 2,      // Stands for what has no token; treated as control.
  kControl = 3,      // Structure (<|im_end|>): parsed and shown only on request.
  kUserDefined = 4,  // Plain text that is always one token.
  kUnused = 5,       // Never shown.
  kByte = 6,         // "<0xHH>": one byte.
};
// Hidden from plain text, and only parsed from text that may hold special tokens.
constexpr bool IsSpecial(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

struct Token {
  std::string text;   // As in the file.
  std::string bytes;  // What it decodes to.
  TokenKind kind = TokenKind::kNormal;
};

struct Vocabulary {
  std::vector<Token> tokens;
  std::array<TokenId, 256> byte_tokens{};
  MergeTable merges{0};
  std::set<TokenId> end_of_text;
  std::optional<TokenId> begin;  // Only where prompts are to begin with it.
};

// Errors as Tokenizer::FromGguf; they name the key and the item.
Result<Vocabulary> ReadVocabulary(const gguf::File& file);

}  // namespace assay::llm

#endif  // ASSAY_LLM_TOKENIZER_VOCABULARY_H_
