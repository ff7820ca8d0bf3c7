#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/testing.h"
#include "kernels/weight_types.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::Encoded;
using testing::FirstBeyond;
using testing::Operand;
using testing::Random;
using testing::RunLaunch;

struct Case {
  uint32_t tokens, heads, kv_heads, head_dim, first_position;
};

constexpr Case kCases[] = {
    {1, 1, 1, 8, 0},     {1, 4, 2, 64, 95}, {3, 4, 2, 64, 30}, {1, 16, 8, 128, 70},
    {40, 2, 1, 32, 0},   {5, 5, 1, 24, 61}, {2, 7, 7, 40, 31}, {1, 16, 1, 16, 33},
    {2, 12, 2, 256, 10}, {9, 6, 2, 96, 27},
};

TEST(Attention, AgreesWithFloat64OnEveryIsa) {
  for (const DType type : {DType::kF32, DType::kF16}) {
    Random random(5);
    for (const Case& c : kCases) {
      const uint32_t seen = c.first_position + c.tokens;
      const uint32_t cols = c.heads * c.head_dim;
      const std::vector<float> q = random.Values(size_t{c.tokens} * cols);
      const Encoded k = testing::RandomWeights(random, type, seen, c.kv_heads * c.head_dim);
      const Encoded v = testing::RandomWeights(random, type, seen, c.kv_heads * c.head_dim);
      const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
      std::vector<double> expected(q.size());
      ReferenceAttention(Doubles(q), k.values, v.values, c.heads, c.kv_heads, c.head_dim,
                         c.first_position, scale, expected);
      const auto magnitude = [](double a, double b) { return std::abs(a) < std::abs(b); };
      const double largest = std::abs(*std::ranges::max_element(v.values, magnitude));
      for (const Isa isa : SupportedIsas()) {
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << " " << DTypeName(type) << " head_dim "
                                          << c.head_dim << " at " << c.first_position);
        Operand q_operand(q, 4);
        Operand k_operand(k.bytes, 2);
        Operand v_operand(v.bytes, 2);
        Operand out(q.size() * sizeof(float), 4);
        RunLaunch(LaunchAttention(type, ActivationFormat::kF32, c.tokens, c.heads, c.kv_heads,
                                  c.head_dim, c.first_position, scale),
                  isa, {&q_operand, &k_operand, &v_operand, &out});
        const auto values = out.As<float>();
        const auto wide = Doubles(values);
        const size_t bad = FirstBeyond(wide, expected, [&](size_t) { return 1e-5 * largest; });
        ASSERT_EQ(bad, expected.size()) << wide[bad] << " for " << expected[bad];

        if (!AttentionWritesWholeBlocks(c.heads, c.kv_heads, c.head_dim)) continue;
        Operand rounded(QuantizedRowBytes(cols) * c.tokens);
        RunLaunch(LaunchAttention(type, ActivationFormat::kQ8, c.tokens, c.heads, c.kv_heads,
                                  c.head_dim, c.first_position, scale),
                  isa, {&q_operand, &k_operand, &v_operand, &rounded});
        std::vector<std::byte> expected_rows;
        for (uint32_t i = 0; i < c.tokens; ++i) {
          const auto row = testing::QuantizeRow(std::span(values).subspan(size_t{i} * cols, cols));
          expected_rows.insert(expected_rows.end(), row.begin(), row.end());
        }
        ASSERT_EQ(rounded.As<std::byte>(), expected_rows);
      }
    }
  }
}

// A prompt in chunks of any size gives the bits of token by token, also where later rows of the
// cache hold NaN.
TEST(Attention, G6_BitsDoNotDependOnTheChunk) {
  const uint32_t tokens = 77;
  const uint32_t heads = 6;
  const uint32_t kv_heads = 2;
  const uint32_t head_dim = 48;
  const uint32_t cols = heads * head_dim;
  for (const DType type : {DType::kF32, DType::kF16}) {
    Random random(6);
    const std::vector<float> q = random.Values(size_t{tokens} * cols);
    const Encoded k = testing::RandomWeights(random, type, tokens, kv_heads * head_dim);
    const Encoded v = testing::RandomWeights(random, type, tokens, kv_heads * head_dim);
    for (const Isa isa : SupportedIsas()) {
      std::vector<float> first;
      for (const uint32_t chunk : {tokens, 1u, 2u, 3u, 8u, 31u, 32u, 33u}) {
        std::vector<float> result;
        for (uint32_t begin = 0; begin < tokens; begin += chunk) {
          const uint32_t count = std::min(chunk, tokens - begin);
          Operand q_operand(
              std::vector<float>(q.begin() + begin * cols, q.begin() + (begin + count) * cols));
          Operand k_operand(k.bytes);
          Operand v_operand(v.bytes);
          const size_t row = k.bytes.size() / tokens;
          // What has not been appended yet is anything.
          std::fill(k_operand.data() + (begin + count) * row, k_operand.data() + k_operand.size(),
                    std::byte{0xFF});
          std::fill(v_operand.data() + (begin + count) * row, v_operand.data() + v_operand.size(),
                    std::byte{0xFF});
          Operand out(size_t{count} * cols * sizeof(float));
          RunLaunch(LaunchAttention(type, ActivationFormat::kF32, count, heads, kv_heads, head_dim,
                                    begin, 0.125f),
                    isa, {&q_operand, &k_operand, &v_operand, &out});
          const auto values = out.As<float>();
          result.insert(result.end(), values.begin(), values.end());
        }
        if (first.empty()) first = result;
        ASSERT_EQ(result, first) << IsaName(isa) << " in chunks of " << chunk;
      }
    }
  }
}

// A token's own row is the last it sees: NaN in the rows of later tokens of its chunk stays out.
TEST(Attention, LaterTokensOfTheChunkAreNotSeen) {
  const uint32_t head_dim = 16;
  for (const Isa isa : SupportedIsas()) {
    Random random(7);
    std::vector<float> k = random.Values(4 * head_dim);
    std::vector<float> v = random.Values(4 * head_dim);
    std::fill(k.begin() + 3 * head_dim, k.end(), std::nanf(""));
    std::fill(v.begin() + 3 * head_dim, v.end(), std::nanf(""));
    Operand q(random.Values(2 * head_dim));
    Operand k_operand(k);
    Operand v_operand(v);
    Operand out(2 * head_dim * sizeof(float));
    RunLaunch(LaunchAttention(DType::kF32, ActivationFormat::kF32, 2, 1, 1, head_dim, 2, 1.0f), isa,
              {&q, &k_operand, &v_operand, &out});
    const auto values = out.As<float>();
    for (uint32_t j = 0; j < head_dim; ++j) {
      EXPECT_TRUE(std::isfinite(values[j])) << IsaName(isa);
      EXPECT_TRUE(std::isnan(values[head_dim + j])) << IsaName(isa);
    }
  }
}

// Scores of any size: e^score alone would overflow.
TEST(Attention, SoftmaxIsSafeForLargeScores) {
  for (const Isa isa : SupportedIsas()) {
    const uint32_t head_dim = 8;
    const uint32_t rows = 40;
    std::vector<float> k(rows * head_dim, 0.0f);
    std::vector<float> v(rows * head_dim, 0.0f);
    for (uint32_t p = 0; p < rows; ++p) {
      k[p * head_dim] = p == 35 ? 3000.0f : -3000.0f;
      v[p * head_dim] = static_cast<float>(p);
    }
    std::vector<float> query(head_dim, 0.0f);
    query[0] = 1.0f;
    Operand q(query);
    Operand k_operand(k);
    Operand v_operand(v);
    Operand out(head_dim * sizeof(float));
    RunLaunch(
        LaunchAttention(DType::kF32, ActivationFormat::kF32, 1, 1, 1, head_dim, rows - 1, 1.0f),
        isa, {&q, &k_operand, &v_operand, &out});
    EXPECT_EQ(out.As<float>()[0], 35.0f) << IsaName(isa);
  }
}

TEST(Attention, G5_TargetsWithFusedMultiplyAddGiveTheSameBits) {
  Random random(8);
  Operand q(random.Values(3 * 4 * 72));
  Operand k(testing::RandomWeights(random, DType::kF16, 50, 2 * 72).bytes);
  Operand v(testing::RandomWeights(random, DType::kF16, 50, 2 * 72).bytes);
  std::vector<float> first;
  for (const Isa isa : SupportedIsas()) {
    if (isa == Isa::kSse4) continue;
    Operand out(q.size());
    RunLaunch(LaunchAttention(DType::kF16, ActivationFormat::kF32, 3, 4, 2, 72, 47, 0.1f), isa,
              {&q, &k, &v, &out});
    if (first.empty()) first = out.As<float>();
    EXPECT_EQ(out.As<float>(), first) << IsaName(isa);
  }
}

}  // namespace
}  // namespace assay::kernels
