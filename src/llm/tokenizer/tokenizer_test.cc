// Tokenizer: agreement with the reference ids, special tokens, and bytes that are not UTF-8.
#include <array>
#include <fstream>
#include <memory>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "assay/llm.h"

#include "support/gguf_writer.h"
#include "support/tiny_model.h"

namespace assay::llm {
namespace {

using assay::testing::GgufWriter;
using assay::testing::TinyVocabulary;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kShippedModel[] = ASSAY_SOURCE_DIR "/models/tiny-tales-12m-Q8_0.gguf";

nlohmann::json ReadJson(const std::string& name) {
  std::ifstream in(std::string(ASSAY_SOURCE_DIR "/tests/data/") + name);
  return nlohmann::json::parse(in);
}

std::shared_ptr<const Tokenizer> Shipped() {
  const auto file = gguf::File::Open(kShippedModel).value();
  return Tokenizer::FromGguf(*file).value();
}

std::shared_ptr<const Tokenizer> Make(const TinyVocabulary& vocabulary) {
  GgufWriter writer;
  AddVocabulary(vocabulary, &writer);
  const std::string bytes = writer.Build();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "tiny").value();
  auto tokenizer = Tokenizer::FromGguf(*file);
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().ToString();
  return std::move(*tokenizer);
}

// Every row's text gives its ids, and the ids its text.
void ExpectAgreement(const Tokenizer& tokenizer, const nlohmann::json& rows) {
  for (const auto& row : rows) {
    const auto text = row.at("text").get<std::string>();
    const bool special = row.value("special", false);
    const auto ids = tokenizer.Encode(text, special);
    ASSERT_TRUE(ids.has_value());
    EXPECT_EQ(*ids, row.at("ids").get<std::vector<TokenId>>()) << row.dump();
    EXPECT_EQ(tokenizer.Decode(*ids, true).value(), text);
  }
}

TEST(Tokenizer, G2_AgreesWithLlamaCppAndTheTrainerOnAllLines) {
  const nlohmann::json lines = ReadJson("tokenizer_lines.json");
  ASSERT_THAT(lines, SizeIs(222));
  ExpectAgreement(*Shipped(), lines);
}

TEST(Tokenizer, G2_AgreesWithLlamaCppOnHardUnicode) {
  const nlohmann::json sweep = ReadJson("tokenizer_sweep.json");
  ASSERT_THAT(sweep.at("shipped"), SizeIs(311));
  ExpectAgreement(*Shipped(), sweep.at("shipped"));
}

TEST(Tokenizer, G2_AgreesWithLlamaCppWhereEverySplitShows) {
  const nlohmann::json sweep = ReadJson("tokenizer_sweep.json");
  ASSERT_THAT(sweep.at("pairs"), SizeIs(311));
  ExpectAgreement(*Make(assay::testing::MakePairVocabulary(1)), sweep.at("pairs"));
}

TEST(Tokenizer, G2_StopsAtBothEndTokensOfTheShippedModel) {
  const auto tokenizer = Shipped();
  EXPECT_EQ(tokenizer->vocabulary_size(), 4096U);
  EXPECT_TRUE(tokenizer->IsEndOfText(0));   // <|endoftext|>
  EXPECT_FALSE(tokenizer->IsEndOfText(1));  // <|im_start|>
  EXPECT_TRUE(tokenizer->IsEndOfText(2));   // <|im_end|>
  EXPECT_FALSE(tokenizer->IsEndOfText(3));
  EXPECT_FALSE(tokenizer->IsEndOfText(-1));
  EXPECT_FALSE(tokenizer->begin_of_text().has_value());
}

TEST(Tokenizer, ControlTokensAreParsedAndShownOnRequestOnly) {
  const auto tokenizer = Shipped();
  const std::string text = "a<|im_end|>";
  const auto plain = tokenizer->Encode(text).value();
  EXPECT_GT(plain.size(), 2U);
  EXPECT_EQ(tokenizer->Decode(plain).value(), text);
  const auto parsed = tokenizer->Encode(text, true).value();
  ASSERT_THAT(parsed, SizeIs(2));
  EXPECT_EQ(parsed[1], 2);
  EXPECT_EQ(tokenizer->Decode(parsed).value(), "a");
  EXPECT_EQ(tokenizer->Decode(parsed, true).value(), text);
}

TEST(Tokenizer, UserDefinedTokensAreAlwaysParsedAndShown) {
  TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  const auto tool = static_cast<TokenId>(vocabulary.tokens.size());
  vocabulary.tokens.emplace_back("<tool>");
  vocabulary.types.push_back(4);
  const auto tokenizer = Make(vocabulary);
  const auto ids = tokenizer->Encode("<tool>").value();
  EXPECT_THAT(ids, ElementsAre(tool));
  EXPECT_EQ(tokenizer->Decode(ids).value(), "<tool>");
}

TEST(Tokenizer, UnusedTokensAreNeverShownAndUnknownOnesAreHidden) {
  TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  const auto unused = static_cast<TokenId>(vocabulary.tokens.size());
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"<unused0>", "<unk>", "<0x4A>"});
  vocabulary.types.insert(vocabulary.types.end(), {5, 2, 6});
  const auto tokenizer = Make(vocabulary);
  const std::array<TokenId, 3> ids = {unused, unused + 1, unused + 2};
  EXPECT_EQ(tokenizer->Decode(ids).value(), "J");
  EXPECT_EQ(tokenizer->Decode(ids, true).value(), "<unk>J");
}

TEST(Tokenizer, EndTokensAreControlTokensWhateverTheFileSays) {
  TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  vocabulary.types.assign(vocabulary.types.size(), 1);
  const auto tokenizer = Make(vocabulary);
  const auto end = static_cast<TokenId>(vocabulary.end_of_sequence);
  EXPECT_THAT(tokenizer->Encode("<|im_end|>", true).value(), ElementsAre(end));
  EXPECT_EQ(tokenizer->Decode(std::array{end}).value(), "");
  EXPECT_TRUE(tokenizer->IsEndOfText(end));
  EXPECT_TRUE(tokenizer->IsEndOfText(static_cast<TokenId>(vocabulary.end_of_text)));
}

TEST(Tokenizer, BeginTokenIsToldWhereTheFileAsksForOne) {
  const TinyVocabulary vocabulary = assay::testing::MakeTinyVocabulary();
  GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", "qwen2");
  writer.AddStrings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.AddStrings("tokenizer.ggml.merges", vocabulary.merges);
  writer.AddU32("tokenizer.ggml.bos_token_id", 7);
  writer.AddBool("tokenizer.ggml.add_bos_token", true);
  const std::string bytes = writer.Build();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "bos").value();
  const auto tokenizer = Tokenizer::FromGguf(*file).value();
  EXPECT_EQ(tokenizer->begin_of_text(), 7);
}

TEST(Tokenizer, DecodeRefusesIdsOutsideTheVocabulary) {
  const auto tokenizer = Shipped();
  for (const TokenId bad : {-1, 4096}) {
    const auto text = tokenizer->Decode(std::array<TokenId, 2>{5, bad});
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(text.error().message(), HasSubstr("Id " + std::to_string(bad) +
                                                  " (number 2) is outside the vocabulary of 4096"));
  }
  EXPECT_TRUE(tokenizer->Decode(std::array{4095}).has_value());
}

TEST(Tokenizer, EncodeRefusesTextsOverTwoGibibytes) {
  // Only the length is looked at.
  const std::string_view huge("", size_t{1} << 31);
  const auto ids = Shipped()->Encode(huge);
  ASSERT_FALSE(ids.has_value());
  EXPECT_EQ(ids.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(ids.error().message(), HasSubstr("2147483648 bytes; at most 2147483647"));
}

TEST(Tokenizer, EmptyTextHasNoTokens) {
  const auto tokenizer = Shipped();
  EXPECT_THAT(tokenizer->Encode("").value(), SizeIs(0));
  EXPECT_THAT(tokenizer->Encode("", true).value(), SizeIs(0));
  EXPECT_EQ(tokenizer->Decode({}).value(), "");
}

TEST(Tokenizer, BytesThatAreNotUtf8ComeBackUnchanged) {
  const auto shipped = Shipped();
  const auto pairs = Make(assay::testing::MakePairVocabulary(2));
  std::mt19937 generator(7);
  const std::array<std::string, 8> parts = {
      "a", " ", "\n", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc3\xa9"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t n = generator() % 12; n > 0; --n) {
      text += generator() % 2 == 0 ? parts[generator() % parts.size()]
                                   : std::string(1, static_cast<char>(generator()));
    }
    ASSERT_EQ(shipped->Decode(shipped->Encode(text).value()).value(), text);
    ASSERT_EQ(pairs->Decode(pairs->Encode(text).value()).value(), text);
  }
}

// A million letters in one word, spaces, and marks: minutes if any step were quadratic.
TEST(Tokenizer, LongRunsTakeNearLinearTime) {
  const auto tokenizer = Make(assay::testing::MakeTinyVocabulary());
  const std::string letters(1 << 20, 'a');
  // "aa" and "aaaa" are the tokens there are.
  EXPECT_THAT(tokenizer->Encode(letters).value(), SizeIs(letters.size() / 4));
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(spaces + "x").value()).value(), spaces + "x");
  const std::string marks(1 << 20, '!');
  EXPECT_THAT(tokenizer->Encode(marks).value(), SizeIs(marks.size()));
}

}  // namespace
}  // namespace assay::llm
