#include <limits>

#include <fmt/format.h>

#include "assay/llm.h"

#include "llm/tokenizer/bpe.h"
#include "llm/tokenizer/pre_tokenizer.h"
#include "llm/tokenizer/special_tokens.h"
#include "llm/tokenizer/vocabulary.h"

namespace assay::llm {

struct Tokenizer::State {
  Vocabulary vocabulary;
  SpecialTokens special;
};

namespace {

SpecialTokens CollectSpecialTokens(const Vocabulary& vocabulary) {
  std::vector<SpecialTokens::Entry> entries;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const Token& token = vocabulary.tokens[id];
    if (!IsSpecial(token.kind) && token.kind != TokenKind::kUserDefined) continue;
    entries.push_back({token.text, static_cast<TokenId>(id), IsSpecial(token.kind)});
  }
  return SpecialTokens(std::move(entries));
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::FromGguf(const gguf::File& file) {
  ASSAY_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(file));
  SpecialTokens special = CollectSpecialTokens(vocabulary);
  auto state = std::make_unique<State>(State{std::move(vocabulary), std::move(special)});
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(state)));
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text, bool parse_special) const {
  constexpr auto kMaxBytes = static_cast<size_t>(std::numeric_limits<int32_t>::max());
  if (text.size() > kMaxBytes) {
    return Fail(ErrorCode::kInvalidArgument, "text",
                fmt::format("The text has {} bytes; at most {} are tokenized at once.", text.size(),
                            kMaxBytes));
  }
  const Vocabulary& vocabulary = state_->vocabulary;
  BytePairMerger merger(&vocabulary.merges);
  std::vector<TokenId> ids;
  std::vector<TokenId> piece;
  for (const SpecialTokens::Fragment& fragment : state_->special.Split(text, parse_special)) {
    if (fragment.token) {
      ids.push_back(*fragment.token);
      continue;
    }
    for (std::string_view rest = fragment.text; !rest.empty();) {
      const size_t length = NextPieceLength(rest);
      piece.clear();
      for (const char byte : rest.substr(0, length)) {
        piece.push_back(vocabulary.byte_tokens[static_cast<unsigned char>(byte)]);
      }
      merger.Append(piece, &ids);
      rest.remove_prefix(length);
    }
  }
  return ids;
}

Result<std::string> Tokenizer::Decode(std::span<const TokenId> ids, bool special) const {
  const std::vector<Token>& tokens = state_->vocabulary.tokens;
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    // As a size, a negative id is a very large one.
    if (static_cast<size_t>(ids[i]) >= tokens.size()) {
      return Fail(ErrorCode::kInvalidArgument, "ids",
                  fmt::format("Id {} (number {}) is outside the vocabulary of {} tokens.", ids[i],
                              i + 1, tokens.size()));
    }
    const Token& token = tokens[static_cast<size_t>(ids[i])];
    if (special || !IsSpecial(token.kind)) bytes += token.bytes;
  }
  return bytes;
}

size_t Tokenizer::vocabulary_size() const { return state_->vocabulary.tokens.size(); }

bool Tokenizer::IsEndOfText(TokenId id) const {
  return state_->vocabulary.end_of_text.contains(id);
}

std::optional<TokenId> Tokenizer::begin_of_text() const { return state_->vocabulary.begin; }

}  // namespace assay::llm
