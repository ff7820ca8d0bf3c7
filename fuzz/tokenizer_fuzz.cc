// Any bytes as text: tokens lie in the vocabulary, the text comes back, and the split is the one
// that the pattern gives. The lowest bit of the first byte says whether control tokens count.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/llm.h"

#include "llm/tokenizer/pre_tokenizer.h"
#include "llm/tokenizer/unicode_class.h"
#include "llm/tokenizer/utf8_streamer.h"
#include "support/gguf_writer.h"
#include "support/pattern_oracle.h"
#include "support/tiny_model.h"

namespace {

using assay::llm::DecodedChar;
using assay::llm::Tokenizer;
using assay::testing::TinyVocabulary;

void Require(bool holds) {
  if (!holds) std::abort();
}

std::shared_ptr<const Tokenizer> Make(const TinyVocabulary& vocabulary) {
  assay::testing::GgufWriter writer;
  AddVocabulary(vocabulary, &writer);
  const std::string bytes = writer.Build();
  const auto file = assay::gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "fuzz");
  Require(file.has_value());
  auto tokenizer = Tokenizer::FromGguf(**file);
  Require(tokenizer.has_value());
  return std::move(*tokenizer);
}

TinyVocabulary WithUserTokens() {
  TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  for (const char* text : {"<tool>", "<tool_call>", "ll><|im_", "  \n"}) {
    vocabulary.tokens.emplace_back(text);
    vocabulary.types.push_back(4);
  }
  return vocabulary;
}

struct Fixture {
  std::shared_ptr<const Tokenizer> tokenizer = Make(WithUserTokens());
  assay::testing::PatternOracle pattern{
      "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
      "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
};

void CheckRoundTrip(const Tokenizer& tokenizer, std::string_view text, bool special) {
  const auto ids = tokenizer.Encode(text, special);
  Require(ids.has_value());
  for (const assay::llm::TokenId id : *ids) {
    Require(id >= 0 && static_cast<size_t>(id) < tokenizer.vocabulary_size());
  }
  Require(tokenizer.Decode(*ids, true).value() == text);
  assay::llm::Utf8Streamer streamer;
  std::string streamed;
  for (const assay::llm::TokenId id : *ids) {
    streamed += streamer.Push(tokenizer.Decode(std::span(&id, 1), true).value());
  }
  Require(streamed + streamer.Finish() == text);
}

// Where the oracle can tell: well-formed text of characters that its older Unicode has.
bool OracleCanTell(std::string_view text) {
  constexpr uint32_t kFirstNewerLetter = 0x1123F;
  constexpr uint32_t kMongolianVowelSeparator = 0x180E;
  constexpr size_t kMostBytes = 4096;
  for (size_t offset = 0; offset < text.size();) {
    const DecodedChar c = assay::llm::DecodeAt(text, offset);
    const bool surrogate = c.code_point >= 0xD800 && c.code_point < 0xE000;
    const bool malformed = c.code_point == assay::llm::kReplacementChar && c.length == 1;
    if (surrogate || malformed || c.code_point >= kFirstNewerLetter ||
        c.code_point == kMongolianVowelSeparator) {
      return false;
    }
    offset += c.length;
  }
  return text.size() <= kMostBytes;
}

void CheckSplit(const assay::testing::PatternOracle& pattern, std::string_view text) {
  const bool can_tell = OracleCanTell(text);
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = assay::llm::NextPieceLength(text.substr(offset));
    Require(length > 0 && length <= text.size() - offset);
    if (can_tell) Require(pattern.MatchAt(text, offset) == length);
    offset += length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Fixture fixture;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool special = (data[0] & 1) != 0;
  CheckRoundTrip(*fixture.tokenizer, text, special);
  CheckSplit(fixture.pattern, text);
  return 0;
}
