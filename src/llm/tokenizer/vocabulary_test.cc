// Vocabularies that a model file may bring and that are refused.
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"

#include "support/gguf_writer.h"
#include "support/tiny_model.h"

namespace assay::llm {
namespace {

using assay::testing::GgufWriter;
using assay::testing::TinyVocabulary;
using ::testing::HasSubstr;

Result<std::shared_ptr<const Tokenizer>> Load(const GgufWriter& writer) {
  const std::string bytes = writer.Build();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "m.gguf").value();
  return Tokenizer::FromGguf(*file);
}

void ExpectRefused(const GgufWriter& writer, ErrorCode code, const std::string& words) {
  const auto tokenizer = Load(writer);
  ASSERT_FALSE(tokenizer.has_value()) << "expected: " << words;
  EXPECT_EQ(tokenizer.error().code(), code) << tokenizer.error().ToString();
  EXPECT_THAT(tokenizer.error().message(), HasSubstr(words));
}

void ExpectBroken(const std::function<void(TinyVocabulary*)>& damage, const std::string& words) {
  TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  damage(&vocabulary);
  GgufWriter writer;
  AddVocabulary(vocabulary, &writer);
  ExpectRefused(writer, ErrorCode::kFormat, "The vocabulary of \"m.gguf\" is broken: " + words);
}

// The keys of a whole vocabulary but for the one named, so that a test can write its own.
GgufWriter Without(std::string_view left_out) {
  const TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  GgufWriter writer;
  const auto add_text = [&](std::string_view key, std::string_view value) {
    if (key != left_out) writer.AddString(key, value);
  };
  add_text("tokenizer.ggml.model", "gpt2");
  add_text("tokenizer.ggml.pre", "qwen2");
  if (left_out != "tokenizer.ggml.tokens") {
    writer.AddStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  }
  if (left_out != "tokenizer.ggml.merges") {
    writer.AddStrings("tokenizer.ggml.merges", vocabulary.merges);
  }
  return writer;
}

TEST(Vocabulary, TypesScoresAndIdsAreOptional) {
  const auto tokenizer = Load(Without("nothing"));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().ToString();
}

TEST(Vocabulary, MissingKeysAreNamed) {
  for (const std::string key : {"tokenizer.ggml.model", "tokenizer.ggml.pre",
                                "tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    ExpectRefused(Without(key), ErrorCode::kNotFound,
                  "\"m.gguf\" has no metadata key \"" + key + "\"");
  }
}

TEST(Vocabulary, OtherModelsAndPreTokenizersAreUnsupported) {
  GgufWriter model = Without("tokenizer.ggml.model");
  model.AddString("tokenizer.ggml.model", "llama");
  ExpectRefused(model, ErrorCode::kUnsupported, "tokenizer of model \"llama\"");
  GgufWriter pre = Without("tokenizer.ggml.pre");
  pre.AddString("tokenizer.ggml.pre", "gpt-4o");
  ExpectRefused(pre, ErrorCode::kUnsupported, "pre-tokenizer \"gpt-4o\"");
}

TEST(Vocabulary, ListsOfAnotherTypeAreRefused) {
  GgufWriter tokens = Without("tokenizer.ggml.tokens");
  tokens.AddString("tokenizer.ggml.tokens", "a b c");
  ExpectRefused(tokens, ErrorCode::kFormat, "tokenizer.ggml.tokens is no array");
  GgufWriter numbers = Without("tokenizer.ggml.tokens");
  numbers.AddI32s("tokenizer.ggml.tokens", std::array{1, 2});
  ExpectRefused(numbers, ErrorCode::kFormat, "tokenizer.ggml.tokens holds no strings");
  GgufWriter merges = Without("tokenizer.ggml.merges");
  merges.AddI32s("tokenizer.ggml.merges", std::array{1, 2});
  ExpectRefused(merges, ErrorCode::kFormat, "tokenizer.ggml.merges holds no strings");
  const size_t count = assay::testing::MakeTinyVocabulary().tokens.size();
  GgufWriter types = Without("nothing");
  types.AddF32s("tokenizer.ggml.token_type", std::vector<float>(count, 1.0F));
  ExpectRefused(types, ErrorCode::kFormat, "tokenizer.ggml.token_type holds no integers");
}

TEST(Vocabulary, NoTokens) {
  GgufWriter writer = Without("tokenizer.ggml.tokens");
  writer.AddStrings("tokenizer.ggml.tokens", {});
  ExpectRefused(writer, ErrorCode::kFormat, "tokenizer.ggml.tokens is empty");
}

TEST(Vocabulary, EmptyToken) {
  ExpectBroken([](TinyVocabulary* v) { v->tokens[260].clear(); },
               "token 260 of tokenizer.ggml.tokens is empty");
}

TEST(Vocabulary, DuplicateToken) {
  ExpectBroken([](TinyVocabulary* v) { v->tokens[v->tokens.size() - 2] = "A"; }, "tokens 65 and ");
}

TEST(Vocabulary, TypesOfAnotherLength) {
  const std::string count = std::to_string(assay::testing::MakeTinyVocabulary().tokens.size());
  ExpectBroken([](TinyVocabulary* v) { v->types.pop_back(); },
               "tokenizer.ggml.token_type has " +
                   std::to_string(assay::testing::MakeTinyVocabulary().tokens.size() - 1) +
                   " items for " + count + " tokens");
  ExpectBroken([](TinyVocabulary* v) { v->types.push_back(1); }, "tokenizer.ggml.token_type has ");
}

TEST(Vocabulary, TypeOutsideItsRange) {
  for (const int32_t bad : {0, 7, -1, std::numeric_limits<int32_t>::min()}) {
    ExpectBroken([&](TinyVocabulary* v) { v->types[65] = bad; },
                 "token 65 (\"A\") has type " + std::to_string(bad) +
                     " in tokenizer.ggml.token_type; the types are 1 to 6");
  }
}

TEST(Vocabulary, ScoresOfAnotherLength) {
  const size_t count = assay::testing::MakeTinyVocabulary().tokens.size();
  GgufWriter right = Without("nothing");
  right.AddF32s("tokenizer.ggml.scores", std::vector<float>(count));
  EXPECT_TRUE(Load(right).has_value());
  GgufWriter wrong = Without("nothing");
  wrong.AddF32s("tokenizer.ggml.scores", std::vector<float>(count + 1));
  ExpectRefused(wrong, ErrorCode::kFormat,
                "tokenizer.ggml.scores has " + std::to_string(count + 1) + " items");
}

TEST(Vocabulary, ByteWithoutToken) {
  ExpectBroken([](TinyVocabulary* v) { v->tokens['Z'] = "ZZZZ"; },
               "tokenizer.ggml.tokens has no token for byte 0x5a");
}

TEST(Vocabulary, MergeThatIsNoPair) {
  for (const std::string bad : {"ab", "", " ", "a ", " a"}) {
    ExpectBroken([&](TinyVocabulary* v) { v->merges[3] = bad; },
                 "merge 3 of tokenizer.ggml.merges is \"" + bad + "\", not two tokens");
  }
}

TEST(Vocabulary, MergeThatPointsNowhere) {
  ExpectBroken([](TinyVocabulary* v) { v->merges[3] = "a zz"; },
               "merge 3 of tokenizer.ggml.merges (\"a zz\") needs token \"zz\"");
  ExpectBroken([](TinyVocabulary* v) { v->merges[3] = "zz a"; }, "merge 3 of ");
  // Both parts are tokens, but what they merge into is none.
  ExpectBroken([](TinyVocabulary* v) { v->merges[3] = "z q"; },
               "merge 3 of tokenizer.ggml.merges (\"z q\") needs token \"zq\"");
}

TEST(Vocabulary, IdsOutsideTheVocabulary) {
  const auto count = static_cast<uint32_t>(assay::testing::MakeTinyVocabulary().tokens.size());
  for (const std::string key :
       {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id", "tokenizer.ggml.padding_token_id",
        "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.fim_pad_token_id"}) {
    GgufWriter last = Without("nothing");
    last.AddU32(key, count - 1);
    EXPECT_TRUE(Load(last).has_value()) << key;
    GgufWriter past = Without("nothing");
    past.AddU32(key, count);
    ExpectRefused(past, ErrorCode::kFormat,
                  key + " is " + std::to_string(count) + ", outside the vocabulary of " +
                      std::to_string(count) + " tokens");
  }
  GgufWriter text = Without("nothing");
  text.AddString("tokenizer.ggml.eos_token_id", "2");
  ExpectRefused(text, ErrorCode::kFormat, "is a string, not an unsigned integer");
}

TEST(Vocabulary, KeysThatEndTextAreHeeded) {
  for (const std::string key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                "tokenizer.ggml.eom_token_id", "tokenizer.ggml.fim_sep_token_id"}) {
    GgufWriter writer = Without("nothing");
    writer.AddU32(key, 65);
    const auto tokenizer = Load(writer).value();
    EXPECT_TRUE(tokenizer->IsEndOfText(65)) << key;
    EXPECT_FALSE(tokenizer->IsEndOfText(66));
  }
}

TEST(Vocabulary, BeginAskedForButNotGiven) {
  GgufWriter writer = Without("nothing");
  writer.AddBool("tokenizer.ggml.add_bos_token", true);
  ExpectRefused(
      writer, ErrorCode::kFormat,
      "tokenizer.ggml.add_bos_token is true, but there is no tokenizer.ggml.bos_token_id");
}

TEST(Vocabulary, ByteTypeWithoutAByte) {
  for (const std::string bad : {"<0x4g>", "<0x4>", "<0x4AA>", "(0x4A>", "<0x4A)"}) {
    ExpectBroken(
        [&](TinyVocabulary* v) {
          v->tokens.push_back(bad);
          v->types.push_back(6);
        },
        "token " + std::to_string(assay::testing::MakeTinyVocabulary().tokens.size()) +
            " is of the byte type, but \"" + bad + "\" has not the form");
  }
}

}  // namespace
}  // namespace assay::llm
