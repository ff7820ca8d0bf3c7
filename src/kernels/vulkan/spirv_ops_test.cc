// The compute shaders against the float64 references: random values in odd shapes, views at any
// offset, and what each op's header says of ids out of range, NaN and infinity.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/argmax/argmax.h"
#include "kernels/attention/attention.h"
#include "kernels/embedding/embedding.h"
#include "kernels/half.h"
#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/ops_cases.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/vulkan/shaders_testing.h"
#include "tests/conformance/executing_backends.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::Encoded;
using testing::FirstBeyond;
using testing::Random;
using testing::Shaders;

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class SpirvOps : public Shaders, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { Start(GetParam()); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SpirvOps);
INSTANTIATE_TEST_SUITE_P(Backends, SpirvOps, ::testing::ValuesIn(gpu::testing::SpirvBackends()),
                         gpu::testing::BackendTestName);

struct Shape {
  uint32_t rows, cols, tokens;
};
std::vector<Shape> ShapesOf(DType type) {
  std::vector<Shape> shapes = {{5, 32, 1},   {83, 96, 6},    {17, 512, 1},      {35, 1024, 3},
                               {20, 768, 2}, {9, 1440, 1},   {33, 2336, 5},     {16400, 64, 1},
                               {3, 4096, 4}, {40, 1312, 13}, {1, 1024 + 256, 1}};
  if (DTypeBlockSize(type) == 1) shapes.insert(shapes.end(), {{7, 37, 2}, {6, 1, 1}, {3, 515, 4}});
  return shapes;
}

class SpirvWeights : public Shaders,
                     public ::testing::WithParamInterface<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override { Start(std::get<0>(GetParam())); }
  static DType Type() { return std::get<1>(GetParam()); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SpirvWeights);

TEST_P(SpirvWeights, MatMulAgreesWithFloat64AtAnyOffsetWithTheSameBits) {
  Random random(1);
  for (const auto& [rows, cols, tokens] : ShapesOf(Type())) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " by " << tokens);
    const Encoded weights = testing::RandomWeights(random, Type(), rows, cols);
    const std::vector<float> x = random.Values(size_t{tokens} * cols);
    std::vector<double> expected(size_t{tokens} * rows), magnitude(expected.size());
    ReferenceMatMul(weights.values, Doubles(x), rows, cols, tokens, expected, magnitude);
    std::vector<float> first;
    for (const auto& [weights_offset, x_offset] :
         {std::pair<uint64_t, uint64_t>{0, 0}, {2, 0}, {1, 4}, {16, 8}}) {
      const Matrix w = Weights(weights, Type(), rows, cols, weights_offset);
      const Matrix out = AsMatrix(OutputOf(tokens, rows));
      Run(ops_->MatMul(*session_, w, Input(x, cols, x_offset), out), {out.view});
      const auto actual = Read<float>(out.view);
      EXPECT_EQ(FirstBeyond(Doubles(actual), expected,
                            [&](size_t i) { return 1e-5 * magnitude[i] + 1e-30; }),
                expected.size());
      if (first.empty()) first = actual;
      ASSERT_EQ(actual, first) << "at offsets " << weights_offset << ", " << x_offset;
    }
  }
}

TEST_P(SpirvWeights, G6_ARowHasTheSameBitsInAnyCompany) {
  Random random(2);
  // Rows of every type that begin at multiples of 16 bytes: wide loads.
  const uint32_t rows = 50, cols = 1792, tokens = 9;
  const Encoded weights = testing::RandomWeights(random, Type(), rows, cols);
  const std::vector<float> x = random.Values(size_t{tokens} * cols);
  const Matrix w = Weights(weights, Type(), rows, cols, 0);
  const Matrix all = AsMatrix(OutputOf(tokens, rows));
  Run(ops_->MatMul(*session_, w, Input(x, cols, 0), all), {all.view});
  const auto together = Read<float>(all.view);
  for (uint32_t t = 0; t < tokens; ++t) {
    const std::vector<float> row(x.begin() + t * cols, x.begin() + (t + 1) * cols);
    const Matrix residual = F32(random.Values(rows), rows);
    const auto added = Read<float>(residual.view);
    const Matrix out = AsMatrix(OutputOf(1, rows));
    Run(ops_->MatMul(*session_, w, Input(row, cols, 0), out), {out.view});
    const auto alone = Read<float>(out.view);
    Run(ops_->MatMul(*session_, w, Input(row, cols, 0), residual, residual.view), {residual.view});
    const auto in_place = Read<float>(residual.view);
    for (uint32_t r = 0; r < rows; ++r) {
      ASSERT_EQ(alone[r], together[t * rows + r]) << "token " << t << " row " << r;
      ASSERT_EQ(in_place[r], alone[r] + added[r]);
    }
  }
}

TEST_P(SpirvWeights, ByExpertHasTheBitsOfMatMulAndZerosForUnknownIds) {
  Random random(3);
  const uint32_t experts = 6, rows = 37, cols = 800, fan = 2;
  const std::vector<int32_t> ids = {3, 0, 5, 3, -1, 6};
  const auto pairs = static_cast<uint32_t>(ids.size());
  const Encoded weights = testing::RandomWeights(random, Type(), experts * rows, cols);
  const std::vector<float> x = random.Values(size_t{pairs} / fan * cols);
  std::vector<double> expected(size_t{pairs} * rows), magnitude(expected.size());
  ReferenceMatMulByExpert(weights.values, ids, Doubles(x), rows, cols, experts, fan, expected,
                          magnitude);
  const Matrix w = Weights(weights, Type(), experts * rows, cols, 0);
  const Matrix out = AsMatrix(OutputOf(pairs, rows));
  Run(ops_->MatMulByExpert(*session_, w, experts, o_->Values(ids), Input(x, cols, 0), out),
      {out.view});
  const auto actual = Read<float>(out.view);
  EXPECT_EQ(
      FirstBeyond(Doubles(actual), expected, [&](size_t i) { return 1e-5 * magnitude[i] + 1e-30; }),
      expected.size());
  const uint64_t bytes = w.view.size_bytes() / experts;
  for (uint32_t p = 0; p < 4; ++p) {
    const Matrix one{w.view.Slice(static_cast<uint64_t>(ids[p]) * bytes, bytes).value(), Type(),
                     rows, cols};
    const std::vector<float> row(x.begin() + p / fan * cols, x.begin() + (p / fan + 1) * cols);
    const Matrix alone = AsMatrix(OutputOf(1, rows));
    Run(ops_->MatMul(*session_, one, Input(row, cols, 0), alone), {alone.view});
    const auto values = Read<float>(alone.view);
    for (uint32_t r = 0; r < rows; ++r) ASSERT_EQ(actual[p * rows + r], values[r]);
  }

  // The fused forms with the same ids.
  const Matrix up_out = AsMatrix(OutputOf(pairs, rows)), parts = AsMatrix(OutputOf(pairs, rows));
  const Matrix up = o_->Weights(Type(), experts * rows, cols);
  const Activations in = Input(x, cols), gated = OutputOf(pairs, rows),
                    product = OutputOf(pairs, rows);
  Run(ops_->MatMulByExpert(*session_, up, experts, o_->Values(ids), in, up_out), {up_out.view});
  Run(ops_->SiluMul(*session_, out, up_out, product), {product.view});
  Run(ops_->GateUpByExpert(*session_, w, up, experts, o_->Values(ids), in, gated), {gated.view});
  EXPECT_EQ(Read<float>(gated.view), Read<float>(product.view));
  const Activations wide = o_->Input(ActivationFormat::kF32, pairs, cols);
  const Matrix weight = o_->F32(2, 3), residual = o_->F32(2, rows);
  const Matrix sums = AsMatrix(OutputOf(2, rows)), fused = AsMatrix(OutputOf(2, rows));
  Run(ops_->MatMulByExpert(*session_, w, experts, o_->Values(ids), wide, parts), {parts.view});
  Run(ops_->WeightedSum(*session_, parts, weight.view, 3, sums, residual.view), {sums.view});
  Run(ops_->DownByExpertSum(*session_, w, experts, o_->Values(ids), wide, weight.view, fused,
                            residual.view),
      {fused.view});
  EXPECT_EQ(Read<float>(fused.view), Read<float>(sums.view));
}

// As many pairs as make workgroups take experts, and more than one looks through at once.
TEST_P(SpirvWeights, ByExpertOfManyPairsHasTheBitsOfMatMul) {
  Random random(11);
  const uint32_t experts = 3, rows = 37, cols = 288, fan = 2, tokens = 2051;
  std::vector<int32_t> ids(size_t{tokens} * fan);
  for (size_t p = 0; p < ids.size(); ++p) ids[p] = static_cast<int32_t>(p * p % 5) - 1;
  const Encoded weights = testing::RandomWeights(random, Type(), experts * rows, cols);
  const std::vector<float> x = random.Values(size_t{tokens} * cols);
  const Matrix w = Weights(weights, Type(), experts * rows, cols, 0);
  const Matrix out = AsMatrix(OutputOf(tokens * fan, rows));
  Run(ops_->MatMulByExpert(*session_, w, experts, o_->Values(ids), Input(x, cols), out),
      {out.view});
  const auto actual = Read<float>(out.view);
  std::vector<std::vector<float>> of_expert;
  const uint64_t bytes = w.view.size_bytes() / experts;
  for (uint32_t e = 0; e < experts; ++e) {
    const Matrix all = AsMatrix(OutputOf(tokens, rows));
    const Matrix one{w.view.Slice(e * bytes, bytes).value(), Type(), rows, cols};
    Run(ops_->MatMul(*session_, one, Input(x, cols), all), {all.view});
    of_expert.push_back(Read<float>(all.view));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const int32_t id = ids[i / rows];
    const bool known = id >= 0 && id < static_cast<int32_t>(experts);
    const float expected =
        known ? of_expert[static_cast<size_t>(id)][i / rows / fan * rows + i % rows] : 0.0F;
    ASSERT_EQ(actual[i], expected) << "pair " << i / rows << " row " << i % rows;
  }
}

TEST_P(SpirvWeights, EmbeddingGivesTheRowsExactly) {
  Random random(4);
  const std::vector<int32_t> ids = {3, 0, 10, 3, 11, -1, 7};
  for (uint32_t cols : {32u, 96u, 416u, 1024u, 1024u + 512u + 256u + 96u}) {
    if (DTypeBlockSize(Type()) == 1) ++cols;
    const Encoded table = testing::RandomWeights(random, Type(), 11, cols);
    std::vector<double> expected(ids.size() * cols);
    ReferenceEmbedding(table.values, ids, cols, expected);
    for (const uint64_t offset : {0, 2, 5}) {
      const Matrix out = AsMatrix(OutputOf(static_cast<uint32_t>(ids.size()), cols));
      Run(ops_->Embedding(*session_, Weights(table, Type(), 11, cols, offset), o_->Values(ids),
                          out),
          {out.view});
      const auto actual = Read<float>(out.view);
      for (size_t j = 0; j < expected.size(); ++j) {
        ASSERT_EQ(actual[j], static_cast<float>(expected[j])) << cols << " at " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SpirvWeights,
                         ::testing::Combine(::testing::ValuesIn(gpu::testing::SpirvBackends()),
                                            ::testing::ValuesIn(kTypes)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  std::string(DTypeName(std::get<1>(tested.param)));
                         });

TEST_P(SpirvOps, NormsAgreeWithFloat64) {
  Random random(5);
  for (const uint32_t cols : {1u, 33u, 1000u, 5001u}) {
    const std::vector<float> x = random.Values(size_t{3} * cols), weight = random.Values(cols);
    for (const bool weighted : {false, true}) {
      std::vector<double> expected(x.size());
      ReferenceRmsNorm(Doubles(x), weighted ? Doubles(weight) : std::vector<double>{}, cols, 1e-6f,
                       expected);
      const Activations out = OutputOf(3, cols);
      Run(ops_->RmsNorm(*session_, F32(x, cols), weighted ? o_->Values(weight) : gpu::BufferView{},
                        1e-6f, out),
          {out.view});
      EXPECT_EQ(FirstBeyond(Doubles(Read<float>(out.view)), expected,
                            [&](size_t i) { return 2e-6 * std::abs(expected[i]) + 1e-30; }),
                expected.size())
          << cols;
    }
  }
}

TEST_P(SpirvOps, HeadsAgreeWithFloat64AtLongPositions) {
  Random random(6);
  for (const auto& [heads, head_dim] :
       {std::pair{1u, 2u}, {3u, 24u}, {5u, 128u}, {2u, 40u}, {9u, 64u}}) {
    for (const uint32_t position : {0u, 600u, 40960u, 1000000u}) {
      for (const float base : {1e4f, 1e6f, 3.5f}) {
        const uint32_t cols = heads * head_dim;
        const std::vector<float> x = random.Values(size_t{3} * cols);
        const std::vector<float> weight = random.Values(head_dim);
        std::vector<double> normed = Doubles(x);
        ReferenceHeadNorm(normed, Doubles(weight), head_dim, 1e-6f);
        std::vector<double> expected = normed;
        ReferenceRope(expected, cols, head_dim, position, base);
        const Matrix both = F32(x, cols), parts = F32(x, cols);
        const gpu::BufferView w = o_->Values(weight);
        Run(ops_->HeadNormRope(*session_, both, head_dim, w, 1e-6f, position, base), {both.view});
        Run(ops_->HeadNorm(*session_, parts, head_dim, w, 1e-6f), {parts.view});
        const auto halves = Read<float>(parts.view);
        EXPECT_EQ(FirstBeyond(Doubles(halves), normed,
                              [&](size_t i) { return 2e-6 * std::abs(normed[i]) + 1e-30; }),
                  normed.size());
        Run(ops_->Rope(*session_, parts, head_dim, position, base), {parts.view});
        const auto actual = Read<float>(both.view);
        EXPECT_EQ(Read<float>(parts.view), actual);
        for (size_t i = 0; i < actual.size(); ++i) {
          const size_t j = i % head_dim % (head_dim / 2) + i / head_dim * head_dim;
          const double length = std::hypot(expected[j], expected[j + head_dim / 2]);
          ASSERT_NEAR(actual[i], expected[i], 4e-6 * length + 1e-30)
              << head_dim << " at " << position << " base " << base;
        }
      }
    }
  }
}

TEST_P(SpirvOps, KvAppendRoundsToNearestEven) {
  Random random(7);
  const uint32_t cols = 67;
  std::vector<float> k = random.Values(2 * cols);
  const std::vector<float> special = {
      0.0f,     -0.0f,      kInfinity,       -kInfinity,      65519.9f,     65520.0f,
      0x1p-25f, 0x1.8p-24f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f, -0x1.004p-14f};
  std::ranges::copy(special, k.begin());
  const std::vector<float> v = random.Values(2 * cols);
  const Matrix k16 = o_->Cache(DType::kF16, 9, cols), v16 = o_->Cache(DType::kF16, 9, cols);
  const Matrix k32 = o_->Cache(DType::kF32, 9, cols), v32 = o_->Cache(DType::kF32, 9, cols);
  const auto rows = [](const Matrix& m, uint32_t bytes) {
    return m.view.Slice(uint64_t{3} * m.cols * bytes, uint64_t{2} * m.cols * bytes).value();
  };
  Run(ops_->KvAppend(*session_, F32(k, cols), F32(v, cols), 3, k16, v16),
      {rows(k16, 2), rows(v16, 2)});
  Run(ops_->KvAppend(*session_, F32(k, cols), F32(v, cols), 3, k32, v32),
      {rows(k32, 4), rows(v32, 4)});
  const auto k_bits = Read<uint16_t>(rows(k16, 2)), v_bits = Read<uint16_t>(rows(v16, 2));
  for (size_t i = 0; i < k.size(); ++i) {
    ASSERT_EQ(k_bits[i], FloatToHalf(k[i])) << k[i];
    ASSERT_EQ(v_bits[i], FloatToHalf(v[i])) << v[i];
  }
  EXPECT_EQ(Read<float>(rows(k32, 4)), k);
  EXPECT_EQ(Read<float>(rows(v32, 4)), v);
}

TEST_P(SpirvOps, AttentionAgreesWithFloat64AndG6InAnyChunk) {
  struct Case {
    uint32_t tokens, heads, kv_heads, head_dim, first_position;
  };
  constexpr Case kCases[] = {{1, 1, 1, 8, 0},    {3, 4, 2, 64, 30},   {1, 16, 8, 128, 700},
                             {5, 5, 1, 24, 61},  {2, 12, 2, 256, 10}, {40, 2, 1, 32, 0},
                             {2, 6, 2, 48, 1030}};
  Random random(8);
  for (const DType type : {DType::kF32, DType::kF16}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(::testing::Message()
                   << DTypeName(type) << " " << c.head_dim << " at " << c.first_position);
      const uint32_t seen = c.first_position + c.tokens, cols = c.heads * c.head_dim;
      const uint32_t kv_cols = c.kv_heads * c.head_dim;
      const std::vector<float> q = random.Values(size_t{c.tokens} * cols);
      const Encoded k = testing::RandomWeights(random, type, seen + 2, kv_cols);
      const Encoded v = testing::RandomWeights(random, type, seen + 2, kv_cols);
      const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
      std::vector<double> expected(q.size());
      ReferenceAttention(Doubles(q), k.values, v.values, c.heads, c.kv_heads, c.head_dim,
                         c.first_position, scale, expected);
      const auto magnitude = [](double a, double b) { return std::abs(a) < std::abs(b); };
      const double largest = std::abs(*std::ranges::max_element(v.values, magnitude));
      std::vector<float> first;
      for (const uint64_t offset : {0, 4}) {
        const Matrix k_cache{o_->Bytes(k.bytes, offset), type, seen + 2, kv_cols};
        const Matrix v_cache{o_->Bytes(v.bytes, offset), type, seen + 2, kv_cols};
        const Activations out = OutputOf(c.tokens, cols);
        Run(ops_->Attention(*session_, F32(q, cols), k_cache, v_cache, c.head_dim, c.first_position,
                            scale, out),
            {out.view});
        const auto together = Read<float>(out.view);
        const auto wide = Doubles(together);
        const size_t bad = FirstBeyond(wide, expected, [&](size_t) { return 1e-5 * largest; });
        ASSERT_EQ(bad, expected.size()) << wide[bad] << " for " << expected[bad];
        if (first.empty()) first = together;
        ASSERT_EQ(together, first) << "at offset " << offset;
        // The last token by itself.
        const std::vector<float> last(q.end() - cols, q.end());
        const Activations alone = OutputOf(1, cols);
        Run(ops_->Attention(*session_, F32(last, cols), k_cache, v_cache, c.head_dim, seen - 1,
                            scale, alone),
            {alone.view});
        ASSERT_EQ(Read<float>(alone.view),
                  std::vector<float>(together.end() - cols, together.end()));
      }
    }
  }
}

TEST_P(SpirvOps, AttentionSeesNoLaterRowAndIsSafeForLargeScores) {
  Random random(9);
  constexpr uint32_t kDim = 16;
  std::vector<float> k = random.Values(4 * kDim), v = random.Values(4 * kDim);
  std::fill(k.begin() + 3 * kDim, k.end(), kNaN);
  std::fill(v.begin() + 3 * kDim, v.end(), kNaN);
  const Activations out = OutputOf(2, kDim);
  Run(ops_->Attention(*session_, o_->F32(2, kDim), F32(k, kDim), F32(v, kDim), kDim, 2, 1.0f, out),
      {out.view});
  const auto values = Read<float>(out.view);
  for (uint32_t j = 0; j < kDim; ++j) {
    EXPECT_TRUE(std::isfinite(values[j]));
    EXPECT_TRUE(std::isnan(values[kDim + j]));
  }

  constexpr uint32_t kRows = 600;
  std::vector<float> keys(kRows * 8, 0.0f), numbers(kRows * 8, 0.0f), query(8, 0.0f);
  for (uint32_t p = 0; p < kRows; ++p) {
    keys[p * 8] = p == 535 ? 3000.0f : -3000.0f;
    numbers[p * 8] = static_cast<float>(p);
  }
  query[0] = 1.0f;
  const Activations found = OutputOf(1, 8);
  Run(ops_->Attention(*session_, F32(query, 8), F32(keys, 8), F32(numbers, 8), 8, kRows - 1, 1.0f,
                      found),
      {found.view});
  EXPECT_EQ(Read<float>(found.view)[0], 535.0f);
}

TEST_P(SpirvOps, SiluMulAgreesWithFloat64AndTakesExtremes) {
  Random random(10);
  const uint32_t cols = 2081;
  std::vector<float> gate = random.Values(2 * cols);
  for (float& value : gate) value *= 20.0f;
  const std::vector<float> up = random.Values(gate.size());
  std::vector<double> expected(gate.size());
  ReferenceSiluMul(Doubles(gate), Doubles(up), expected);
  const Activations out = OutputOf(2, cols);
  Run(ops_->SiluMul(*session_, F32(gate, cols), F32(up, cols), out), {out.view});
  EXPECT_EQ(FirstBeyond(Doubles(Read<float>(out.view)), expected,
                        [&](size_t i) { return 1e-6 * std::abs(expected[i]) + 1e-30; }),
            expected.size());

  const std::vector<float> extreme = {-1e30f, -100.0f, 0.0f, 100.0f, 1e30f, kInfinity, kNaN};
  const Activations ends = OutputOf(1, 7);
  Run(ops_->SiluMul(*session_, F32(extreme, 7), F32(std::vector<float>(7, 1.0f), 7), ends),
      {ends.view});
  const auto values = Read<float>(ends.view);
  for (const size_t i : {0, 1, 2}) EXPECT_EQ(values[i], 0.0f);
  EXPECT_EQ(values[3], 100.0f);
  EXPECT_EQ(values[4], 1e30f);
  EXPECT_EQ(values[5], kInfinity);
  EXPECT_TRUE(std::isnan(values[6]));
}

TEST_P(SpirvOps, ElementwiseAlsoInPlace) {
  Random random(11);
  for (const uint32_t count : {1u, 257u, 70001u}) {
    const std::vector<float> a = random.Values(count), b = random.Values(count);
    const Matrix out = AsMatrix(OutputOf(1, count)), in_place = F32(a, count);
    Run(ops_->Add(*session_, F32(a, count), F32(b, count), out), {out.view});
    Run(ops_->Mul(*session_, in_place, F32(b, count), in_place), {in_place.view});
    const auto sums = Read<float>(out.view), products = Read<float>(in_place.view);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(sums[i], a[i] + b[i]);
      ASSERT_EQ(products[i], a[i] * b[i]);
    }
  }
}

TEST_P(SpirvOps, RouteAgreesWithFloat64) {
  Random random(12);
  for (const uint32_t experts : {1u, 8u, 60u, 128u, 1000u}) {
    for (const bool normalise : {false, true}) {
      const uint32_t used = std::min(experts, 8u);
      const std::vector<float> logits = random.Values(size_t{4} * experts);
      const gpu::BufferView ids = o_->Garbage(16 * used), weights = o_->Garbage(16 * used);
      Run(ops_->Route(*session_, F32(logits, experts), used, normalise, ids, weights),
          {ids, weights});
      const auto actual_ids = Read<int32_t>(ids);
      const auto actual = Read<float>(weights);
      for (uint32_t t = 0; t < 4; ++t) {
        std::vector<int32_t> expected_ids(used);
        std::vector<double> expected(used);
        ReferenceRoute(Doubles(std::span(logits).subspan(t * experts, experts)), normalise,
                       expected_ids, expected);
        for (uint32_t j = 0; j < used; ++j) {
          EXPECT_EQ(actual_ids[t * used + j], expected_ids[j]);
          EXPECT_NEAR(actual[t * used + j], expected[j], 4e-6 * expected[j] + 1e-30);
        }
      }
    }
  }
  std::vector<float> logits = {1.0f, 2.0f, 2.0f, 1.0f, 2.0f};
  const gpu::BufferView ids = o_->Garbage(16), weights = o_->Garbage(16);
  Run(ops_->Route(*session_, F32(logits, 5), 4, true, ids, weights), {ids, weights});
  EXPECT_EQ(Read<int32_t>(ids), (std::vector<int32_t>{1, 2, 4, 0}));
  logits[1] = kNaN;
  Run(ops_->Route(*session_, F32(logits, 5), 4, true, ids, weights), {ids, weights});
  EXPECT_EQ(Read<int32_t>(ids), (std::vector<int32_t>{0, 1, 2, 3}));
  for (const float weight : Read<float>(weights)) EXPECT_TRUE(std::isnan(weight));
}

TEST_P(SpirvOps, WeightedSumAgreesWithFloat64) {
  Random random(13);
  const uint32_t tokens = 3, used = 5, cols = 1027;
  const std::vector<float> x = random.Values(size_t{tokens} * used * cols);
  const std::vector<float> weights = random.Values(tokens * used);
  const std::vector<float> residual = random.Values(size_t{tokens} * cols);
  const Matrix out = AsMatrix(OutputOf(tokens, cols)), in_place = F32(residual, cols);
  const gpu::BufferView w = o_->Values(weights);
  Run(ops_->WeightedSum(*session_, F32(x, cols), w, used, out), {out.view});
  Run(ops_->WeightedSum(*session_, F32(x, cols), w, used, in_place, in_place.view),
      {in_place.view});
  const auto plain = Read<float>(out.view), added = Read<float>(in_place.view);
  for (size_t i = 0; i < plain.size(); ++i) {
    double sum = 0, magnitude = 0;
    for (size_t j = 0; j < used; ++j) {
      const size_t pair = i / cols * used + j;
      const double term = double{weights[pair]} * x[pair * cols + i % cols];
      sum += term;
      magnitude += std::abs(term);
    }
    ASSERT_NEAR(plain[i], sum, 1e-6 * magnitude + 1e-30);
    ASSERT_EQ(added[i], plain[i] + residual[i]);
  }
}

TEST_P(SpirvOps, ArgMaxFindsTheLowestColumnOfTheLargest) {
  Random random(14);
  for (const uint32_t cols : {1u, 3u, 100u, 5000u}) {
    std::vector<float> x = random.Values(size_t{6} * cols);
    std::fill(x.begin() + cols, x.begin() + 2 * cols, 2.5f);
    std::fill(x.begin() + 2 * cols, x.begin() + 3 * cols, kNaN);
    std::fill(x.begin() + 3 * cols, x.begin() + 4 * cols, -kInfinity);
    x[3 * cols] = kNaN;
    x[4 * cols + random.Below(cols)] = 100.0f;
    x[5 * cols + random.Below(cols)] = kNaN;
    const gpu::BufferView out = o_->Garbage(24);
    Run(ops_->ArgMax(*session_, F32(x, cols), out), {out});
    const auto actual = Read<int32_t>(out);
    for (size_t r = 0; r < 6; ++r) {
      EXPECT_EQ(actual[r], ReferenceArgMax(std::span(x).subspan(r * cols, cols)))
          << "row " << r << " of " << cols;
    }
  }
}

TEST_P(SpirvOps, QuantizeRoundsLikePlainCode) {
  Random random(15);
  const uint32_t cols = 8192 + 64;
  std::vector<float> x = random.Values(3 * cols);
  std::fill(x.begin(), x.begin() + 32, 0.0f);
  std::fill(x.begin() + 32, x.begin() + 64, 0x1p-101f);
  x[70] = kNaN;
  x[100] = kInfinity;
  std::vector<std::byte> expected;
  for (int r = 0; r < 3; ++r) {
    const auto row = testing::QuantizeRow(std::span(x).subspan(r * cols, cols));
    expected.insert(expected.end(), row.begin(), row.end());
  }
  const Activations out = o_->Output(ActivationFormat::kQ8, 3, cols), copy = OutputOf(3, cols);
  Run(ops_->Quantize(*session_, F32(x, cols), out), {out.view});
  Run(ops_->Quantize(*session_, F32(x, cols), copy), {copy.view});
  EXPECT_EQ(Read<std::byte>(out.view), expected);
  EXPECT_EQ(std::memcmp(Read<float>(copy.view).data(), x.data(), x.size() * sizeof(float)), 0);
}

TEST_P(SpirvOps, E12_FormsWithoutAShaderAreRefused) {
  for (const DType type : kTypes) EXPECT_EQ(ops_->InputFormat(type), ActivationFormat::kF32);
  const Status refused =
      ops_->RmsNorm(*session_, o_->F32(2, 64), {}, 0, o_->Output(ActivationFormat::kQ8, 2, 64));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("rms_norm_plain.q8"));
  const Status routed =
      ops_->Route(*session_, o_->F32(1, 1025), 1, true, o_->Garbage(4), o_->Garbage(4));
  ASSERT_FALSE(routed.has_value());
  EXPECT_THAT(routed.error().message(), ::testing::HasSubstr("1025 experts passes the limit"));
  const Status rows = ops_->ArgMax(*session_, o_->F32(65536, 1), o_->Garbage(4 * 65536));
  ASSERT_FALSE(rows.has_value());
  EXPECT_THAT(rows.error().message(), ::testing::HasSubstr("limit (65535)"));
  EXPECT_EQ(session_->counters().dispatches, 0u);
}

}  // namespace
}  // namespace assay::kernels
