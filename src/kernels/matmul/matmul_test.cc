#include "kernels/matmul/matmul.h"

#include <gtest/gtest.h>

#include "kernels/matmul_by_expert/matmul_by_expert.h"
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

constexpr DType kWeightTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0,
                                  DType::kQ4_0};

ActivationFormat InputOf(DType type) {
  return IsQuantised(type) ? ActivationFormat::kQ8 : ActivationFormat::kF32;
}

struct Case {
  uint32_t rows;
  uint32_t cols;
  uint32_t tokens;
};

// Sizes on both sides of every tile's edge, then random ones.
std::vector<Case> Cases(DType type, Random& random) {
  const uint32_t block = DTypeBlockSize(type);
  std::vector<Case> cases = {{1, block, 1}, {16, 64, 4}, {17, 96, 5}, {5, 1056, 3}, {130, 32, 66}};
  for (int i = 0; i < 4; ++i) {
    const uint32_t cols = block == 1 ? random.Between(1, 100) : 32 * random.Between(1, 5);
    cases.push_back({random.Between(1, 80), cols, random.Between(1, 11)});
  }
  return cases;
}

TEST(MatMul, AgreesWithFloat64OnEveryIsa) {
  for (const DType type : kWeightTypes) {
    Random random(1);
    for (const Case& c : Cases(type, random)) {
      const Encoded weights = testing::RandomWeights(random, type, c.rows, c.cols);
      const Encoded x = testing::RandomActivations(random, InputOf(type), c.tokens, c.cols);
      const std::vector<float> residual = random.Values(size_t{c.tokens} * c.rows);
      std::vector<double> expected(residual.size());
      std::vector<double> magnitude(residual.size());
      ReferenceMatMul(weights.values, x.values, c.rows, c.cols, c.tokens, expected, magnitude);
      const auto tolerance = [&](size_t i) { return 1e-5 * magnitude[i] + 1e-30; };
      for (const Isa isa : SupportedIsas()) {
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << " " << DTypeName(type) << " " << c.rows
                                          << " x " << c.cols << " x " << c.tokens);
        // Weights come from files that align them to 2 bytes.
        Operand w(weights.bytes, 2);
        Operand in(x.bytes, 4);
        Operand out(residual.size() * sizeof(float), 4);
        RunLaunch(LaunchMatMul(type, c.rows, c.cols, c.tokens, false), isa, {&w, &in, &out});
        const auto actual = Doubles(out.As<float>());
        const size_t bad = FirstBeyond(actual, expected, tolerance);
        ASSERT_EQ(bad, expected.size()) << actual[bad] << " for " << expected[bad];

        Operand added(residual.size() * sizeof(float));
        Operand apart(residual, 4);
        RunLaunch(LaunchMatMul(type, c.rows, c.cols, c.tokens, true), isa,
                  {&w, &in, &added, &apart});
        const auto plain = out.As<float>();
        const auto sums = added.As<float>();
        for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], plain[i] + residual[i]);
        RunLaunch(LaunchMatMul(type, c.rows, c.cols, c.tokens, true), isa,
                  {&w, &in, &apart, &apart});
        EXPECT_EQ(apart, added) << "with the residual in place";
      }
    }
  }
}

// A row's bits do not depend on the rows beside it, nor on where a row of weights stands.
TEST(MatMul, G6_BitsDoNotDependOnTheBatch) {
  for (const DType type : kWeightTypes) {
    Random random(2);
    const uint32_t rows = 53;
    const uint32_t cols = 1120;
    const uint32_t tokens = 71;
    const Encoded weights = testing::RandomWeights(random, type, rows, cols);
    const Encoded x = testing::RandomActivations(random, InputOf(type), tokens, cols);
    const size_t x_bytes = x.bytes.size() / tokens;
    for (const Isa isa : SupportedIsas()) {
      SCOPED_TRACE(::testing::Message() << IsaName(isa) << " " << DTypeName(type));
      Operand w(weights.bytes);
      Operand in(x.bytes);
      Operand all(size_t{tokens} * rows * sizeof(float));
      RunLaunch(LaunchMatMul(type, rows, cols, tokens, false), isa, {&w, &in, &all});
      const auto together = all.As<float>();
      for (const uint32_t chunk : {1u, 2u, 3u, 8u, 33u}) {
        std::vector<float> apart;
        for (uint32_t begin = 0; begin < tokens; begin += chunk) {
          const uint32_t count = std::min(chunk, tokens - begin);
          Operand part(std::vector<std::byte>(
              x.bytes.begin() + static_cast<ptrdiff_t>(begin * x_bytes),
              x.bytes.begin() + static_cast<ptrdiff_t>((begin + count) * x_bytes)));
          Operand out(size_t{count} * rows * sizeof(float));
          RunLaunch(LaunchMatMul(type, rows, cols, count, false), isa, {&w, &part, &out});
          const auto values = out.As<float>();
          apart.insert(apart.end(), values.begin(), values.end());
        }
        ASSERT_EQ(apart, together) << "in chunks of " << chunk;
      }
      // The last rows alone: they move to the front of a tile.
      const uint32_t last = 5;
      Operand tail(std::vector<std::byte>(
          weights.bytes.end() - static_cast<ptrdiff_t>(weights.bytes.size() / rows * last),
          weights.bytes.end()));
      Operand tail_out(size_t{tokens} * last * sizeof(float));
      RunLaunch(LaunchMatMul(type, last, cols, tokens, false), isa, {&tail, &in, &tail_out});
      const auto tail_values = tail_out.As<float>();
      for (uint32_t i = 0; i < tokens; ++i) {
        for (uint32_t r = 0; r < last; ++r) {
          ASSERT_EQ(tail_values[i * last + r], together[i * rows + rows - last + r]);
        }
      }
    }
  }
}

// Few tokens and many go different ways through the weights; the longest rows go the second way
// always.
TEST(MatMul, G6_EveryPathGivesTheSameBits) {
  for (const DType type : {DType::kQ8_0, DType::kQ4_0}) {
    Random random(31);
    for (const auto& [rows, cols] : {std::pair{3u, 96u}, std::pair{15u, 544u}, std::pair{16u, 256u},
                                     std::pair{18u, 32u}, std::pair{18u, 33280u}}) {
      const uint32_t tokens = 6;
      const Encoded weights = testing::RandomWeights(random, type, rows, cols);
      const Encoded x = testing::RandomActivations(random, ActivationFormat::kQ8, tokens, cols);
      for (const Isa isa : SupportedIsas()) {
        SCOPED_TRACE(::testing::Message()
                     << IsaName(isa) << " " << DTypeName(type) << " " << rows << " x " << cols);
        Operand w(weights.bytes, 2);
        Operand in(x.bytes);
        Operand all(size_t{tokens} * rows * sizeof(float));
        RunLaunch(LaunchMatMul(type, rows, cols, tokens, false), isa, {&w, &in, &all});
        const auto together = all.As<float>();
        Operand one(std::vector<std::byte>(
            x.bytes.begin(), x.bytes.begin() + static_cast<ptrdiff_t>(x.bytes.size() / tokens)));
        Operand out(rows * sizeof(float));
        RunLaunch(LaunchMatMul(type, rows, cols, 1, false), isa, {&w, &one, &out});
        const auto alone = out.As<float>();
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin()));
      }
    }
  }
}

// Targets with a fused multiply-add agree on everything, all of them on quantised weights.
TEST(MatMul, G5_TargetsGiveTheSameBits) {
  for (const DType type : kWeightTypes) {
    Random random(3);
    const uint32_t rows = 35;
    const uint32_t cols = 416;
    const uint32_t tokens = 6;
    Operand w(testing::RandomWeights(random, type, rows, cols).bytes);
    Operand in(testing::RandomActivations(random, InputOf(type), tokens, cols).bytes);
    std::vector<float> first;
    for (const Isa isa : SupportedIsas()) {
      if (isa == Isa::kSse4 && !IsQuantised(type)) continue;
      Operand out(size_t{tokens} * rows * sizeof(float));
      RunLaunch(LaunchMatMul(type, rows, cols, tokens, false), isa, {&w, &in, &out});
      if (first.empty()) first = out.As<float>();
      EXPECT_EQ(out.As<float>(), first) << IsaName(isa) << " " << DTypeName(type);
    }
  }
}

// The extremes of both operands: an int8 path that saturates shows here.
TEST(MatMul, IntegerProductsDoNotSaturate) {
  const uint32_t cols = 64;
  for (const int8_t weight : {int8_t{-128}, int8_t{127}}) {
    std::vector<std::byte> bytes;
    for (uint32_t b = 0; b < cols / 32; ++b) {
      const uint16_t one = 0x3C00;
      bytes.resize(bytes.size() + 34, static_cast<std::byte>(weight));
      std::memcpy(bytes.data() + bytes.size() - 34, &one, sizeof(one));
    }
    for (const float sign : {-1.0f, 1.0f}) {
      const std::vector<float> x(cols, sign * 127.0f);
      for (const Isa isa : SupportedIsas()) {
        Operand w(bytes);
        Operand in(testing::QuantizeRow(x));
        Operand out(sizeof(float));
        RunLaunch(LaunchMatMul(DType::kQ8_0, 1, cols, 1, false), isa, {&w, &in, &out});
        EXPECT_EQ(out.As<float>()[0], static_cast<float>(weight) * sign * 127.0f * cols)
            << IsaName(isa);
      }
    }
  }
}

// The grid comes from the shapes alone and hands out enough workgroups for many threads.
TEST(MatMul, SplitsLargeMatricesIntoManyWorkgroups) {
  EXPECT_GE(LaunchMatMul(DType::kQ8_0, 1024, 3072, 1, false).grid.x, 16u);
  EXPECT_GE(LaunchMatMul(DType::kQ4_0, 3072, 1024, 1, false).grid.x, 16u);
  EXPECT_GE(LaunchMatMul(DType::kF16, 1024, 1024, 1, false).grid.x, 16u);
}

std::vector<int32_t> RandomIds(Random& random, uint32_t pairs, uint32_t experts) {
  std::vector<int32_t> ids(pairs);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(experts));
  return ids;
}

TEST(MatMulByExpert, AgreesWithFloat64AndWithMatMul) {
  struct ExpertCase {
    uint32_t rows, cols, experts, tokens, fan;
  };
  for (const DType type : kWeightTypes) {
    Random random(4);
    for (const ExpertCase& c :
         {ExpertCase{20, 64, 8, 1, 2}, ExpertCase{33, 96, 4, 9, 2}, ExpertCase{16, 32, 2, 70, 1},
          ExpertCase{40, 64, 3, 5, 3}, ExpertCase{7, 32, 64, 3, 4}}) {
      const uint32_t pairs = c.tokens * c.fan;
      const Encoded weights = testing::RandomWeights(random, type, c.rows * c.experts, c.cols);
      const Encoded x = testing::RandomActivations(random, InputOf(type), c.tokens, c.cols);
      std::vector<int32_t> ids = RandomIds(random, pairs, c.experts);
      if (pairs > 2) {
        ids[0] = -1;
        ids[2] = static_cast<int32_t>(c.experts);
      }
      std::vector<double> expected(size_t{pairs} * c.rows);
      std::vector<double> magnitude(expected.size());
      ReferenceMatMulByExpert(weights.values, ids, x.values, c.rows, c.cols, c.experts, c.fan,
                              expected, magnitude);
      const auto tolerance = [&](size_t i) { return 1e-5 * magnitude[i] + 1e-30; };
      for (const Isa isa : SupportedIsas()) {
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << " " << DTypeName(type) << " "
                                          << c.experts << " experts, " << pairs << " pairs");
        Operand w(weights.bytes, 2);
        Operand id_operand(ids);
        Operand in(x.bytes);
        Operand out(expected.size() * sizeof(float));
        RunLaunch(LaunchMatMulByExpert(type, c.rows, c.cols, c.experts, pairs, c.fan), isa,
                  {&w, &id_operand, &in, &out});
        const auto actual = out.As<float>();
        const auto wide = Doubles(actual);
        const size_t bad = FirstBeyond(wide, expected, tolerance);
        ASSERT_EQ(bad, expected.size()) << wide[bad] << " for " << expected[bad];

        const size_t matrix = weights.bytes.size() / c.experts;
        const size_t x_bytes = x.bytes.size() / c.tokens;
        for (uint32_t pair = 0; pair < pairs; ++pair) {
          const size_t id = static_cast<size_t>(ids[pair]);
          if (id >= c.experts) continue;
          const auto at = [](const std::vector<std::byte>& bytes, size_t begin, size_t count) {
            return std::vector<std::byte>(bytes.begin() + static_cast<ptrdiff_t>(begin),
                                          bytes.begin() + static_cast<ptrdiff_t>(begin + count));
          };
          Operand one_w(at(weights.bytes, id * matrix, matrix));
          Operand one_x(at(x.bytes, pair / c.fan * x_bytes, x_bytes));
          Operand one_out(c.rows * sizeof(float));
          RunLaunch(LaunchMatMul(type, c.rows, c.cols, 1, false), isa, {&one_w, &one_x, &one_out});
          const auto alone = one_out.As<float>();
          ASSERT_TRUE(std::equal(alone.begin(), alone.end(), actual.begin() + pair * c.rows))
              << "pair " << pair;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::kernels
