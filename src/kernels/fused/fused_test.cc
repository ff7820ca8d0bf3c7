// The fused ops on every instruction set: the bits of their parts, and the values of float64.
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/down_by_expert_sum/down_by_expert_sum.h"
#include "kernels/gate_up/gate_up.h"
#include "kernels/head_norm_rope_append/head_norm_rope_append.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/norm_route/norm_route.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/testing.h"
#include "kernels/weight_types.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::FirstBeyond;
using testing::Operand;
using testing::Random;
using testing::RandomActivations;
using testing::RandomWeights;
using testing::RunLaunch;

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0};

ActivationFormat InputOf(DType type) {
  return IsQuantised(type) ? ActivationFormat::kQ8 : ActivationFormat::kF32;
}
Operand Room(uint64_t floats) { return Operand(floats * sizeof(float), 4); }
Operand RoomFor(ActivationFormat format, uint32_t rows, uint32_t cols) {
  return Operand(ActivationBytes(format, rows, cols), 4);
}

// silu(gate) * up, and how far the products' own tolerance carries it.
void ReferenceGateUp(std::span<const double> gate, std::span<const double> up,
                     std::span<const double> gate_magnitude, std::span<const double> up_magnitude,
                     std::vector<double>& out, std::vector<double>& tolerance) {
  out.resize(gate.size());
  tolerance.resize(gate.size());
  ReferenceSiluMul(gate, up, out);
  for (size_t i = 0; i < out.size(); ++i) {
    const double silu = std::abs(gate[i] / (1 + std::exp(-gate[i])));
    // The slope of silu is below 1.1.
    tolerance[i] = 1.1e-5 * gate_magnitude[i] * (std::abs(up[i]) + 1e-5 * up_magnitude[i]) +
                   1e-5 * up_magnitude[i] * silu + 2e-6 * std::abs(out[i]) + 1e-30;
  }
}

TEST(GateUp, E10_HasTheBitsOfItsPartsAndTheValuesOfFloat64) {
  Random random(41);
  for (const DType type : kTypes) {
    for (const auto& [rows, cols] : {std::pair{96u, 64u}, {83u, 96u}, {640u, 256u}}) {
      const uint32_t tokens = 2;
      const auto gate = RandomWeights(random, type, rows, cols);
      const auto up = RandomWeights(random, type, rows, cols);
      const auto x = RandomActivations(random, InputOf(type), tokens, cols);
      const size_t count = size_t{tokens} * rows;
      std::vector<double> g(count), u(count), gm(count), um(count), expected, tolerance;
      ReferenceMatMul(gate.values, x.values, rows, cols, tokens, g, gm);
      ReferenceMatMul(up.values, x.values, rows, cols, tokens, u, um);
      ReferenceGateUp(g, u, gm, um, expected, tolerance);
      for (const ActivationFormat format : {ActivationFormat::kF32, ActivationFormat::kQ8}) {
        if (format == ActivationFormat::kQ8 && rows % kQ8Block != 0) continue;
        for (const Isa isa : SupportedIsas()) {
          Operand gate_in(gate.bytes, 2), up_in(up.bytes, 2), x_in(x.bytes, 4);
          Operand gate_out = Room(count), up_out = Room(count);
          Operand parts = RoomFor(format, tokens, rows), fused = RoomFor(format, tokens, rows);
          const Launch product = LaunchMatMul(type, rows, cols, tokens, false);
          RunLaunch(product, isa, {&gate_in, &x_in, &gate_out});
          RunLaunch(product, isa, {&up_in, &x_in, &up_out});
          RunLaunch(LaunchSiluMul(tokens, rows, format), isa, {&gate_out, &up_out, &parts});
          RunLaunch(LaunchGateUp(type, rows, cols, tokens, format), isa,
                    {&gate_in, &up_in, &x_in, &fused});
          ASSERT_TRUE(fused == parts) << IsaName(isa) << " " << DTypeName(type) << " " << rows;
          if (format != ActivationFormat::kF32) continue;
          const auto values = Doubles(fused.As<float>());
          EXPECT_EQ(FirstBeyond(values, expected, [&](size_t i) { return tolerance[i]; }), count)
              << IsaName(isa) << " " << DTypeName(type);
        }
      }
    }
  }
}

TEST(GateUpByExpert, E10_HasTheBitsOfItsPartsAndTheValuesOfFloat64) {
  Random random(42);
  constexpr uint32_t kExperts = 8, kRows = 64, kCols = 96, kFan = 2;
  // One of a kind, one twice, and two that do not exist.
  const std::vector<int32_t> ids = {3, 0, 7, 3, -1, 8};
  const uint32_t pairs = static_cast<uint32_t>(ids.size());
  for (const DType type : kTypes) {
    const auto gate = RandomWeights(random, type, kExperts * kRows, kCols);
    const auto up = RandomWeights(random, type, kExperts * kRows, kCols);
    const auto x = RandomActivations(random, InputOf(type), pairs / kFan, kCols);
    const size_t count = size_t{pairs} * kRows;
    std::vector<double> g(count), u(count), gm(count), um(count), expected, tolerance;
    ReferenceMatMulByExpert(gate.values, ids, x.values, kRows, kCols, kExperts, kFan, g, gm);
    ReferenceMatMulByExpert(up.values, ids, x.values, kRows, kCols, kExperts, kFan, u, um);
    ReferenceGateUp(g, u, gm, um, expected, tolerance);
    for (const ActivationFormat format : {ActivationFormat::kF32, ActivationFormat::kQ8}) {
      for (const Isa isa : SupportedIsas()) {
        Operand gate_in(gate.bytes, 2), up_in(up.bytes, 2), x_in(x.bytes, 4), ids_in(ids, 4);
        Operand gate_out = Room(count), up_out = Room(count);
        Operand parts = RoomFor(format, pairs, kRows), fused = RoomFor(format, pairs, kRows);
        const Launch product = LaunchMatMulByExpert(type, kRows, kCols, kExperts, pairs, kFan);
        RunLaunch(product, isa, {&gate_in, &ids_in, &x_in, &gate_out});
        RunLaunch(product, isa, {&up_in, &ids_in, &x_in, &up_out});
        RunLaunch(LaunchSiluMul(pairs, kRows, format), isa, {&gate_out, &up_out, &parts});
        RunLaunch(LaunchGateUpByExpert(type, kRows, kCols, kExperts, pairs, kFan, format), isa,
                  {&gate_in, &ids_in, &up_in, &x_in, &fused});
        ASSERT_TRUE(fused == parts) << IsaName(isa) << " " << DTypeName(type);
        if (format != ActivationFormat::kF32) continue;
        const auto values = Doubles(fused.As<float>());
        EXPECT_EQ(FirstBeyond(values, expected, [&](size_t i) { return tolerance[i]; }), count)
            << IsaName(isa) << " " << DTypeName(type);
      }
    }
  }
}

TEST(DownByExpertSum, E10_HasTheBitsOfItsPartsAndTheValuesOfFloat64) {
  Random random(43);
  constexpr uint32_t kExperts = 8, kUsed = 3, kTokens = 2, kCols = 64;
  const std::vector<int32_t> ids = {3, 0, 7, 3, -1, 8};
  const uint32_t pairs = kTokens * kUsed;
  for (const DType type : kTypes) {
    for (const uint32_t rows : {24u, 99u, 512u}) {
      const auto down = RandomWeights(random, type, kExperts * rows, kCols);
      const auto x = RandomActivations(random, InputOf(type), pairs, kCols);
      const std::vector<float> weights = random.Values(pairs);
      const std::vector<float> residual = random.Values(size_t{kTokens} * rows);
      const size_t count = size_t{pairs} * rows;
      std::vector<double> products(count), magnitudes(count);
      ReferenceMatMulByExpert(down.values, ids, x.values, rows, kCols, kExperts, 1, products,
                              magnitudes);
      std::vector<double> expected = Doubles(residual);
      std::vector<double> tolerance(expected.size(), 1e-30);
      for (size_t i = 0; i < expected.size(); ++i) {
        tolerance[i] += 2e-6 * std::abs(expected[i]);
        for (size_t j = 0; j < kUsed; ++j) {
          const size_t pair = i / rows * kUsed + j;
          const double term = double{weights[pair]} * products[pair * rows + i % rows];
          expected[i] += term;
          tolerance[i] += 2e-6 * std::abs(term) + 1e-5 * std::abs(double{weights[pair]}) *
                                                      magnitudes[pair * rows + i % rows];
        }
      }
      for (const Isa isa : SupportedIsas()) {
        Operand down_in(down.bytes, 2), ids_in(ids, 4), x_in(x.bytes, 4), weights_in(weights, 4);
        Operand between = Room(count);
        Operand parts(residual, 4), fused(residual, 4);
        RunLaunch(LaunchMatMulByExpert(type, rows, kCols, kExperts, pairs, 1), isa,
                  {&down_in, &ids_in, &x_in, &between});
        RunLaunch(LaunchWeightedSum(kTokens, rows, kUsed, true), isa,
                  {&between, &weights_in, &parts, &parts});
        RunLaunch(LaunchDownByExpertSum(type, rows, kCols, kExperts, kTokens, kUsed), isa,
                  {&down_in, &ids_in, &x_in, &weights_in, &fused, &fused});
        ASSERT_TRUE(fused == parts) << IsaName(isa) << " " << DTypeName(type) << " " << rows;
        const auto values = Doubles(fused.As<float>());
        EXPECT_EQ(FirstBeyond(values, expected, [&](size_t i) { return tolerance[i]; }),
                  expected.size())
            << IsaName(isa) << " " << DTypeName(type);
      }
    }
  }
}

TEST(NormRoute, E10_HasTheBitsOfItsPartsAndTheValuesOfFloat64) {
  Random random(44);
  constexpr uint32_t kTokens = 3;
  for (const auto& [experts, cols] : {std::pair{8u, 96u}, {33u, 31u}, {128u, 64u}}) {
    const uint32_t used = 4;
    const std::vector<float> x = random.Values(size_t{kTokens} * cols);
    const std::vector<float> weight = random.Values(cols);
    const std::vector<float> router = random.Values(size_t{experts} * cols);
    std::vector<double> norm(x.size()), logits(size_t{kTokens} * experts), magnitude(logits.size());
    ReferenceRmsNorm(Doubles(x), Doubles(weight), cols, 1e-6f, norm);
    ReferenceMatMul(Doubles(router), norm, experts, cols, kTokens, logits, magnitude);
    for (const Isa isa : SupportedIsas()) {
      Operand x_in(x, 4), weight_in(weight, 8), router_in(router, 4);
      Operand norm_out = Room(x.size()), logits_out = Room(logits.size());
      Operand ids = Room(kTokens * used), chosen = Room(kTokens * used);
      Operand fused_norm = Room(x.size());
      Operand fused_ids = Room(kTokens * used), fused_chosen = Room(kTokens * used);
      RunLaunch(LaunchRmsNorm(kTokens, cols, 1e-6f, true, ActivationFormat::kF32), isa,
                {&x_in, &weight_in, &norm_out});
      RunLaunch(LaunchMatMul(DType::kF32, experts, cols, kTokens, false), isa,
                {&router_in, &norm_out, &logits_out});
      RunLaunch(LaunchRoute(kTokens, experts, used, true), isa, {&logits_out, &ids, &chosen});
      RunLaunch(LaunchNormRoute(kTokens, cols, 1e-6f, experts, used, true), isa,
                {&x_in, &weight_in, &router_in, &fused_norm, &fused_ids, &fused_chosen});
      EXPECT_TRUE(fused_norm == norm_out) << IsaName(isa);
      EXPECT_TRUE(fused_ids == ids) << IsaName(isa);
      EXPECT_TRUE(fused_chosen == chosen) << IsaName(isa);
      for (uint32_t t = 0; t < kTokens; ++t) {
        std::vector<int32_t> expected_ids(used);
        std::vector<double> expected(used);
        ReferenceRoute(std::span<const double>(logits).subspan(t * experts, experts), true,
                       expected_ids, expected);
        for (uint32_t j = 0; j < used; ++j) {
          EXPECT_EQ(fused_ids.As<int32_t>()[t * used + j], expected_ids[j]);
          EXPECT_NEAR(fused_chosen.As<float>()[t * used + j], expected[j], 1e-4 * expected[j]);
        }
      }
    }
  }
}

TEST(HeadNormRopeAppend, E10_HasTheBitsOfItsPartsAndTheValuesOfFloat64) {
  Random random(45);
  constexpr uint32_t kRows = 3, kPosition = 600;
  for (const auto& [heads, head_dim] : {std::pair{2u, 64u}, {3u, 40u}}) {
    const uint32_t cols = heads * head_dim;
    const std::vector<float> k = random.Values(size_t{kRows} * cols);
    const std::vector<float> v = random.Values(size_t{kRows} * cols);
    const std::vector<float> weight = random.Values(head_dim);
    std::vector<double> expected = Doubles(k);
    for (uint32_t r = 0; r < kRows; ++r) {
      const auto row = std::span(expected).subspan(size_t{r} * cols, cols);
      ReferenceHeadNorm(row, Doubles(weight), head_dim, 1e-6f);
      ReferenceRope(row, cols, head_dim, kPosition + r, 1e4f);
    }
    for (const DType cache : {DType::kF32, DType::kF16}) {
      const uint64_t bytes = k.size() * DTypeBlockBytes(cache);
      for (const Isa isa : SupportedIsas()) {
        Operand k_in(k, 4), k_kept(k, 4), v_in(v, 8), weight_in(weight, 4);
        Operand k_rows(bytes, 4), v_rows(bytes, 4), fused_k(bytes, 4), fused_v(bytes, 4);
        RunLaunch(LaunchHeadNormRope(kRows, cols, head_dim, 1e-6f, true, kPosition, 1e4f), isa,
                  {&k_in, &weight_in});
        RunLaunch(LaunchKvAppend(cache, kRows, cols), isa, {&k_in, &v_in, &k_rows, &v_rows});
        RunLaunch(LaunchHeadNormRopeAppend(cache, kRows, cols, head_dim, 1e-6f, kPosition, 1e4f),
                  isa, {&k_kept, &weight_in, &v_in, &fused_k, &fused_v});
        EXPECT_TRUE(fused_k == k_rows) << IsaName(isa) << " " << DTypeName(cache);
        EXPECT_TRUE(fused_v == v_rows) << IsaName(isa) << " " << DTypeName(cache);
        EXPECT_EQ(k_kept.As<float>(), k);
        if (cache != DType::kF32) continue;
        const auto values = fused_k.As<float>();
        for (size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << IsaName(isa);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::kernels
