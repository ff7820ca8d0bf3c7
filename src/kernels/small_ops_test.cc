// Tests of the ops whose arithmetic fits a line: embedding, kv_append, silu_mul, add, mul, route,
// weighted_sum, argmax; and of the scalar conversions they share.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/argmax/argmax.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/half.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/testing.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::FirstBeyond;
using testing::Operand;
using testing::Random;
using testing::RunLaunch;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Half, EveryValueSurvivesTheTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float wide = HalfToFloat(half);
    if (std::isnan(wide)) {
      EXPECT_GT(bits & 0x7FFF, 0x7C00u);
      EXPECT_EQ(FloatToHalf(wide) | 0x200, half | 0x200);
    } else {
      ASSERT_EQ(FloatToHalf(wide), half);
    }
  }
  EXPECT_EQ(HalfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(HalfToFloat(0x7BFF), 65504.0f);
  EXPECT_EQ(HalfToFloat(0xFC00), -kInfinity);
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3C00);
  EXPECT_EQ(FloatToHalf(1.0f + 0x3p-11f), 0x3C02);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1.002p-11f), 0x3C01);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(FloatToHalf(0x1.8p-24f), 0x0002);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
}

TEST(Embedding, GivesTheRowsExactly) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    Random random(20);
    const uint32_t rows = 11;
    const uint32_t cols = DTypeBlockSize(type) == 1 ? 37 : 96;
    const auto table = testing::RandomWeights(random, type, rows, cols);
    const std::vector<int32_t> ids = {3, 0, 10, 3, 11, -1, 7};
    std::vector<double> expected(ids.size() * cols);
    ReferenceEmbedding(table.values, ids, cols, expected);
    for (const Isa isa : SupportedIsas()) {
      Operand t(table.bytes, 2);
      Operand i(ids, 4);
      Operand out(expected.size() * sizeof(float), 4);
      RunLaunch(LaunchEmbedding(type, rows, cols, static_cast<uint32_t>(ids.size())), isa,
                {&t, &i, &out});
      const auto actual = out.As<float>();
      for (size_t j = 0; j < expected.size(); ++j) {
        ASSERT_EQ(actual[j], static_cast<float>(expected[j]))
            << IsaName(isa) << " " << DTypeName(type);
      }
    }
  }
}

TEST(KvAppend, RoundsEveryValueToNearestEven) {
  Random random(21);
  const uint32_t cols = 67;
  std::vector<float> k = random.Values(2 * cols);
  const std::vector<float> special = {
      0.0f,     -0.0f,      kInfinity,       -kInfinity,      65519.9f,     65520.0f,
      0x1p-25f, 0x1.8p-24f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f, -0x1.004p-14f};
  std::ranges::copy(special, k.begin());
  const std::vector<float> v = random.Values(2 * cols);
  for (const Isa isa : SupportedIsas()) {
    Operand k_in(k, 4);
    Operand v_in(v, 4);
    Operand k_half(k.size() * 2, 2);
    Operand v_half(v.size() * 2, 2);
    RunLaunch(LaunchKvAppend(DType::kF16, 2, cols), isa, {&k_in, &v_in, &k_half, &v_half});
    const auto k_bits = k_half.As<uint16_t>();
    const auto v_bits = v_half.As<uint16_t>();
    for (size_t i = 0; i < k.size(); ++i) {
      ASSERT_EQ(k_bits[i], FloatToHalf(k[i])) << IsaName(isa) << " " << k[i];
      ASSERT_EQ(v_bits[i], FloatToHalf(v[i])) << IsaName(isa) << " " << v[i];
    }
    Operand k_copy(k.size() * 4, 4);
    Operand v_copy(v.size() * 4, 4);
    RunLaunch(LaunchKvAppend(DType::kF32, 2, cols), isa, {&k_in, &v_in, &k_copy, &v_copy});
    EXPECT_EQ(k_copy, k_in);
    EXPECT_EQ(v_copy, v_in);
  }
}

TEST(SiluMul, AgreesWithFloat64OnEveryIsa) {
  Random random(22);
  for (const uint32_t cols : {1u, 33u, 2048u + 32u}) {
    std::vector<float> gate = random.Values(size_t{2} * cols);
    for (float& value : gate) value *= 20.0f;
    const std::vector<float> up = random.Values(gate.size());
    std::vector<double> expected(gate.size());
    ReferenceSiluMul(Doubles(gate), Doubles(up), expected);
    for (const Isa isa : SupportedIsas()) {
      Operand g(gate, 4);
      Operand u(up, 4);
      Operand out(gate.size() * sizeof(float), 4);
      RunLaunch(LaunchSiluMul(2, cols, ActivationFormat::kF32), isa, {&g, &u, &out});
      const auto values = out.As<float>();
      const auto actual = Doubles(values);
      const size_t bad = FirstBeyond(
          actual, expected, [&](size_t i) { return 1e-6 * std::abs(expected[i]) + 1e-30; });
      ASSERT_EQ(bad, expected.size()) << IsaName(isa) << " silu(" << gate[bad]
                                      << "): " << actual[bad] << " for " << expected[bad];
      if (cols % kQ8Block != 0) continue;
      Operand rounded(2 * QuantizedRowBytes(cols), 4);
      RunLaunch(LaunchSiluMul(2, cols, ActivationFormat::kQ8), isa, {&g, &u, &rounded});
      std::vector<std::byte> rows;
      for (int r = 0; r < 2; ++r) {
        const auto row = testing::QuantizeRow(std::span(values).subspan(r * cols, cols));
        rows.insert(rows.end(), row.begin(), row.end());
      }
      EXPECT_EQ(rounded.As<std::byte>(), rows) << IsaName(isa);
    }
  }
}

TEST(SiluMul, ExtremeGates) {
  const std::vector<float> gate = {-1e30f, -100.0f, 0.0f, 100.0f, 1e30f, kInfinity, std::nanf("")};
  const std::vector<float> up(gate.size(), 1.0f);
  for (const Isa isa : SupportedIsas()) {
    Operand g(gate);
    Operand u(up);
    Operand out(gate.size() * sizeof(float));
    RunLaunch(LaunchSiluMul(1, 7, ActivationFormat::kF32), isa, {&g, &u, &out});
    const auto values = out.As<float>();
    EXPECT_EQ(values[0], 0.0f);
    EXPECT_EQ(values[1], 0.0f);
    EXPECT_EQ(values[2], 0.0f);
    EXPECT_EQ(values[3], 100.0f);
    EXPECT_EQ(values[4], 1e30f);
    EXPECT_EQ(values[5], kInfinity);
    EXPECT_TRUE(std::isnan(values[6])) << IsaName(isa);
  }
}

TEST(Elementwise, AddsAndMultipliesAlsoInPlace) {
  Random random(23);
  for (const uint32_t count : {1u, 15u, 16u, 8192u + 5u}) {
    const std::vector<float> a = random.Values(count);
    const std::vector<float> b = random.Values(count);
    for (const Isa isa : SupportedIsas()) {
      Operand a_in(a, 4);
      Operand b_in(b, 8);
      Operand out(count * sizeof(float), 4);
      RunLaunch(LaunchAdd(count), isa, {&a_in, &b_in, &out});
      const auto sums = out.As<float>();
      RunLaunch(LaunchMul(count), isa, {&a_in, &b_in, &a_in});
      const auto products = a_in.As<float>();
      for (uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(sums[i], a[i] + b[i]);
        ASSERT_EQ(products[i], a[i] * b[i]);
      }
    }
  }
}

TEST(Route, AgreesWithFloat64OnEveryIsa) {
  Random random(24);
  for (const uint32_t experts : {1u, 8u, 60u, 128u}) {
    for (const bool normalise : {false, true}) {
      const uint32_t tokens = 4;
      const uint32_t used = std::min(experts, 8u);
      const std::vector<float> logits = random.Values(size_t{tokens} * experts);
      for (const Isa isa : SupportedIsas()) {
        Operand in(logits, 4);
        Operand ids(size_t{tokens} * used * 4, 4);
        Operand weights(size_t{tokens} * used * 4, 4);
        RunLaunch(LaunchRoute(tokens, experts, used, normalise), isa, {&in, &ids, &weights});
        const auto actual_ids = ids.As<int32_t>();
        const auto actual_weights = weights.As<float>();
        for (uint32_t t = 0; t < tokens; ++t) {
          std::vector<int32_t> expected_ids(used);
          std::vector<double> expected_weights(used);
          ReferenceRoute(Doubles(std::span(logits).subspan(t * experts, experts)), normalise,
                         expected_ids, expected_weights);
          for (uint32_t j = 0; j < used; ++j) {
            EXPECT_EQ(actual_ids[t * used + j], expected_ids[j]) << IsaName(isa);
            EXPECT_NEAR(actual_weights[t * used + j], expected_weights[j],
                        4e-6 * expected_weights[j] + 1e-30);
          }
        }
      }
    }
  }
}

TEST(Route, TiesGoToTheLowerIdAndNaNNeverWins) {
  const std::vector<float> logits = {1.0f, 2.0f, 2.0f, 1.0f, 2.0f};
  std::vector<float> broken = logits;
  broken[1] = std::nanf("");
  for (const Isa isa : SupportedIsas()) {
    Operand in(logits);
    Operand ids(4 * 4);
    Operand weights(4 * 4);
    RunLaunch(LaunchRoute(1, 5, 4, true), isa, {&in, &ids, &weights});
    EXPECT_EQ(ids.As<int32_t>(), (std::vector<int32_t>{1, 2, 4, 0})) << IsaName(isa);
    EXPECT_EQ(weights.As<float>()[0], weights.As<float>()[2]);

    Operand nan_in(broken);
    RunLaunch(LaunchRoute(1, 5, 4, true), isa, {&nan_in, &ids, &weights});
    EXPECT_EQ(ids.As<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3})) << IsaName(isa);
    for (const float weight : weights.As<float>()) EXPECT_TRUE(std::isnan(weight));
  }
}

TEST(WeightedSum, AgreesWithFloat64OnEveryIsa) {
  Random random(25);
  for (const uint32_t cols : {1u, 40u, 1024u + 3u}) {
    const uint32_t tokens = 3;
    const uint32_t used = 5;
    const std::vector<float> x = random.Values(size_t{tokens} * used * cols);
    const std::vector<float> weights = random.Values(tokens * used);
    const std::vector<float> residual = random.Values(size_t{tokens} * cols);
    std::vector<double> expected(residual.size());
    std::vector<double> magnitude(residual.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      for (size_t j = 0; j < used; ++j) {
        const double term = static_cast<double>(weights[i / cols * used + j]) *
                            x[(i / cols * used + j) * cols + i % cols];
        expected[i] += term;
        magnitude[i] += std::abs(term);
      }
    }
    for (const Isa isa : SupportedIsas()) {
      Operand in(x, 4);
      Operand w(weights, 4);
      Operand out(residual.size() * 4, 4);
      RunLaunch(LaunchWeightedSum(tokens, cols, used, false), isa, {&in, &w, &out});
      const auto plain = out.As<float>();
      EXPECT_EQ(FirstBeyond(Doubles(plain), expected,
                            [&](size_t i) { return 1e-6 * magnitude[i] + 1e-30; }),
                expected.size())
          << IsaName(isa);
      Operand in_place(residual, 4);
      RunLaunch(LaunchWeightedSum(tokens, cols, used, true), isa, {&in, &w, &in_place, &in_place});
      const auto added = in_place.As<float>();
      for (size_t i = 0; i < added.size(); ++i) ASSERT_EQ(added[i], plain[i] + residual[i]);
    }
  }
}

TEST(ArgMax, FindsTheLowestColumnOfTheLargest) {
  Random random(26);
  for (const uint32_t cols : {1u, 3u, 16u, 100u, 5000u}) {
    std::vector<float> x = random.Values(size_t{6} * cols);
    // Ties, NaN and rows of nothing else.
    std::fill(x.begin() + cols, x.begin() + 2 * cols, 2.5f);
    std::fill(x.begin() + 2 * cols, x.begin() + 3 * cols, std::nanf(""));
    std::fill(x.begin() + 3 * cols, x.begin() + 4 * cols, -kInfinity);
    x[3 * cols] = std::nanf("");
    x[4 * cols + random.Below(cols)] = 100.0f;
    x[5 * cols + random.Below(cols)] = std::nanf("");
    for (const Isa isa : SupportedIsas()) {
      Operand in(x, 4);
      Operand out(6 * 4, 4);
      RunLaunch(LaunchArgMax(6, cols), isa, {&in, &out});
      const auto actual = out.As<int32_t>();
      for (size_t r = 0; r < 6; ++r) {
        EXPECT_EQ(actual[r], ReferenceArgMax(std::span(x).subspan(r * cols, cols)))
            << IsaName(isa) << " row " << r << " of " << cols;
      }
    }
  }
}

// A piece of NaN ahead of one of -infinity: the column comes from the second.
TEST(ArgMax, SkipsWholePiecesOfNaN) {
  std::vector<float> x(5000, std::nanf(""));
  x[4500] = -kInfinity;
  for (const Isa isa : SupportedIsas()) {
    Operand in(x);
    Operand out(4);
    RunLaunch(LaunchArgMax(1, 5000), isa, {&in, &out});
    EXPECT_EQ(out.As<int32_t>()[0], 4500) << IsaName(isa);
  }
}

}  // namespace
}  // namespace assay::kernels
