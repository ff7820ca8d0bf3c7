#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"

#include "support/tiny_model.h"

namespace assay::llm {
namespace {

using ::testing::HasSubstr;

testing::TinyModelOptions Dense() { return {}; }
testing::TinyModelOptions Moe() {
  testing::TinyModelOptions options;
  options.experts = 6;
  options.experts_used = 2;
  return options;
}

// `bytes` with the 4-byte value of `key` replaced.
std::string WithValue(std::string bytes, const std::string& key, uint32_t value) {
  const size_t found = bytes.find(key);
  EXPECT_NE(found, std::string::npos) << key;
  std::memcpy(bytes.data() + found + key.size() + 4, &value, 4);
  return bytes;
}

uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// `bytes` with every `from` replaced by `to`, which is as long.
std::string WithText(std::string bytes, const std::string& from, const std::string& to) {
  EXPECT_EQ(from.size(), to.size());
  size_t count = 0;
  for (size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1)) {
    bytes.replace(at, from.size(), to);
    ++count;
  }
  EXPECT_GT(count, 0U) << from;
  return bytes;
}

Result<Config> Read(const std::string& bytes) {
  auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf");
  if (!file) return Fail(std::move(file).error());
  return ReadConfig(**file);
}

void ExpectRefused(const std::string& bytes, ErrorCode code,
                   const std::vector<std::string>& parts) {
  const auto config = Read(bytes);
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code(), code) << config.error().ToString();
  for (const std::string& part : parts) {
    EXPECT_THAT(config.error().ToString(), HasSubstr(part));
  }
}

TEST(ReadConfig, ReadsADenseModel) {
  testing::TinyModelOptions options = Dense();
  options.tied_output = true;
  const auto config = Read(testing::MakeTinyModel(options).Build());
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->architecture, "qwen3");
  EXPECT_EQ(config->layers, 2U);
  EXPECT_EQ(config->hidden, 64U);
  EXPECT_EQ(config->heads, 4U);
  EXPECT_EQ(config->kv_heads, 2U);
  EXPECT_EQ(config->head_dim, 16U);
  EXPECT_EQ(config->feed_forward, 96U);
  EXPECT_EQ(config->experts, 0U);
  EXPECT_EQ(config->context, 128U);
  EXPECT_EQ(config->vocabulary, testing::MakeTinyVocabulary().tokens.size());
  EXPECT_FLOAT_EQ(config->rms_eps, 1e-6F);
  EXPECT_FLOAT_EQ(config->rope_base, 10000.0F);
  EXPECT_TRUE(config->tied_output);
}

TEST(ReadConfig, ReadsAMixtureOfExperts) {
  const auto config = Read(testing::MakeTinyModel(Moe()).Build());
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->architecture, "qwen3moe");
  EXPECT_EQ(config->experts, 6U);
  EXPECT_EQ(config->experts_used, 2U);
  EXPECT_EQ(config->feed_forward, 96U);
  EXPECT_FALSE(config->tied_output);
}

TEST(ReadConfig, RefusesAnotherArchitectureAndNamesTheKnownOnes) {
  const std::string bytes = WithText(testing::MakeTinyModel(Dense()).Build(), "qwen3", "llama");
  ExpectRefused(bytes, ErrorCode::kUnsupported, {"\"llama\"", "qwen3, qwen3moe", "test.gguf"});
}

struct OutOfRange {
  std::string key;
  uint32_t value;
  std::vector<std::string> parts;
};

TEST(ReadConfig, RefusesValuesOutsideTheirLimitsWithKeyValueAndLimit) {
  const std::string dense = testing::MakeTinyModel(Dense()).Build();
  const std::vector<OutOfRange> cases = {
      {"qwen3.block_count", 0, {"between 1 and 1024"}},
      {"qwen3.block_count", 1025, {"1025", "between 1 and 1024"}},
      {"qwen3.embedding_length", 0, {"between 1 and 131072"}},
      {"qwen3.embedding_length", 1U << 31, {"2147483648", "between 1 and 131072"}},
      {"qwen3.context_length", 0, {"between 1 and 16777216"}},
      {"qwen3.context_length", 16777217, {"16777217", "between 1 and 16777216"}},
      {"qwen3.attention.head_count", 0, {"between 1 and 1024"}},
      {"qwen3.attention.head_count", 4096, {"4096", "between 1 and 1024"}},
      {"qwen3.attention.head_count_kv", 0, {"between 1 and 4"}},
      {"qwen3.attention.head_count_kv", 5, {"between 1 and 4"}},
      {"qwen3.attention.head_count_kv", 3, {"4", "not a multiple", "(3)"}},
      {"qwen3.attention.key_length", 0, {"between 2 and 1024"}},
      {"qwen3.attention.key_length", 1026, {"1026", "between 2 and 1024"}},
      {"qwen3.attention.key_length", 15, {"15", "must be even"}},
      {"qwen3.feed_forward_length", 0, {"between 1 and 1048576"}},
      {"qwen3.feed_forward_length", 1U << 30, {"1073741824", "between 1 and 1048576"}},
      {"qwen3.attention.layer_norm_rms_epsilon", FloatBits(-1e-6F), {"between 0 and 1"}},
      {"qwen3.attention.layer_norm_rms_epsilon", 0x7FC00000, {"nan", "between 0 and 1"}},
      {"qwen3.rope.freq_base", FloatBits(0), {"between 1 and"}},
      {"qwen3.rope.freq_base", 0x7F800000, {"inf", "between 1 and"}},
  };
  for (const OutOfRange& one : cases) {
    SCOPED_TRACE(one.key);
    std::vector<std::string> parts = one.parts;
    parts.push_back('"' + one.key + '"');
    parts.push_back("test.gguf");
    ExpectRefused(WithValue(dense, one.key, one.value), ErrorCode::kFormat, parts);
  }
}

TEST(ReadConfig, RefusesExpertCountsOutsideTheirLimits) {
  const std::string moe = testing::MakeTinyModel(Moe()).Build();
  const std::vector<OutOfRange> cases = {
      {"qwen3moe.expert_count", 0, {"between 1 and 1024"}},
      {"qwen3moe.expert_count", 1025, {"between 1 and 1024"}},
      {"qwen3moe.expert_used_count", 0, {"between 1 and 6"}},
      {"qwen3moe.expert_used_count", 7, {"7", "between 1 and 6"}},
      {"qwen3moe.expert_feed_forward_length", 0, {"between 1 and 1048576"}},
  };
  for (const OutOfRange& one : cases) {
    SCOPED_TRACE(one.key);
    std::vector<std::string> parts = one.parts;
    parts.push_back('"' + one.key + '"');
    ExpectRefused(WithValue(moe, one.key, one.value), ErrorCode::kFormat, parts);
  }
}

TEST(ReadConfig, NamesAMissingKey) {
  const std::string dense = testing::MakeTinyModel(Dense()).Build();
  for (const std::string key :
       {"qwen3.block_count", "qwen3.embedding_length", "qwen3.context_length",
        "qwen3.feed_forward_length", "qwen3.attention.layer_norm_rms_epsilon"}) {
    SCOPED_TRACE(key);
    std::string other = key;
    other.back() = '_';
    ExpectRefused(WithText(dense, key, other), ErrorCode::kNotFound, {'"' + key + '"'});
  }
}

TEST(ReadConfig, TakesTheHeadSizeFromTheWidthWhereNoKeySaysIt) {
  std::string bytes = testing::MakeTinyModel(Dense()).Build();
  bytes = WithText(bytes, "qwen3.attention.key_length", "qwen3.attention.key_lengt_");
  bytes = WithText(bytes, "qwen3.attention.value_length", "qwen3.attention.value_lengt_");
  const auto config = Read(bytes);
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->head_dim, 16U);
}

TEST(ReadConfig, RefusesKeysAndValuesOfDifferentLengths) {
  const std::string bytes =
      WithValue(testing::MakeTinyModel(Dense()).Build(), "qwen3.attention.value_length", 8);
  ExpectRefused(bytes, ErrorCode::kUnsupported, {"(16)", "(8)"});
}

TEST(ReadConfig, RefusesScaledRotations) {
  testing::GgufWriter writer = testing::MakeTinyModel(Dense());
  writer.AddString("qwen3.rope.scaling.type", "yarn");
  ExpectRefused(writer.Build(), ErrorCode::kUnsupported, {"qwen3.rope.scaling.type", "\"yarn\""});
}

TEST(ReadConfig, RefusesAVocabularyThatDoesNotMatch) {
  testing::GgufWriter writer = testing::MakeTinyModel(Dense());
  writer.AddU32("qwen3.vocab_size", 5);
  ExpectRefused(writer.Build(), ErrorCode::kFormat, {"qwen3.vocab_size", "is 5"});

  testing::GgufWriter few;
  few.AddString("general.architecture", "qwen3");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, uint32_t>>{{"block_count", 1},
                                                     {"embedding_length", 8},
                                                     {"context_length", 8},
                                                     {"feed_forward_length", 8},
                                                     {"attention.head_count", 1}}) {
    few.AddU32("qwen3." + key, value);
  }
  few.AddF32("qwen3.attention.layer_norm_rms_epsilon", 1e-6F);
  few.AddStrings("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  few.AddTensor("token_embd.weight", testing::kF32, {8, 3}, std::vector<float>(24));
  ExpectRefused(few.Build(), ErrorCode::kFormat, {"lists 2 tokens", "3 rows"});
}

TEST(ReadConfig, RefusesAFileWithoutAnEmbedding) {
  const std::string bytes =
      WithText(testing::MakeTinyModel(Dense()).Build(), "token_embd.weight", "token_embd.weighs");
  ExpectRefused(bytes, ErrorCode::kNotFound, {"token_embd.weight"});
}

TEST(ReadConfig, ReadsTheShippedModel) {
  const auto file =
      gguf::File::Open(std::string(ASSAY_SOURCE_DIR) + "/models/tiny-tales-12m-Q8_0.gguf");
  ASSERT_TRUE(file.has_value()) << file.error().ToString();
  const auto config = ReadConfig(**file);
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->layers, 6U);
  EXPECT_EQ(config->experts, 8U);
  EXPECT_EQ(config->experts_used, 2U);
  EXPECT_EQ(config->vocabulary, 4096U);
  EXPECT_EQ(config->context, 1024U);
  EXPECT_FALSE(config->tied_output);
}

}  // namespace
}  // namespace assay::llm
