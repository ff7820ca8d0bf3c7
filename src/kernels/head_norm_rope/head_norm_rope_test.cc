#include "kernels/head_norm_rope/head_norm_rope.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/testing.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::Operand;
using testing::Random;
using testing::RunLaunch;

struct Case {
  uint32_t rows, heads, head_dim, first_position;
  float base;
};
constexpr Case kCases[] = {{1, 1, 2, 0, 10000.0f},  {3, 4, 64, 600, 10000.0f},
                           {2, 2, 40, 7, 1e6f},     {1, 3, 128, 131071, 1e6f},
                           {2, 1, 256, 4095, 5e5f}, {1, 2, 10, 2000000, 100.0f}};

// Both values of a pair carry the rotation's rounding, so the tolerance is that of the pair's
// length.
void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected,
                 uint32_t head_dim) {
  const size_t half = head_dim / 2;
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t j = i % head_dim;
    const size_t other = j < half ? i + half : i - half;
    const double length = std::hypot(expected[i], expected[other]);
    ASSERT_LE(std::abs(actual[i] - expected[i]), 4e-6 * length + 1e-30) << "value " << i;
  }
}

TEST(HeadNormRope, AgreesWithFloat64OnEveryIsa) {
  Random random(13);
  for (const Case& c : kCases) {
    const uint32_t cols = c.heads * c.head_dim;
    const std::vector<float> x = random.Values(size_t{c.rows} * cols);
    const std::vector<float> weight = random.Values(c.head_dim);
    for (const bool weighted : {false, true}) {
      const auto weights = weighted ? Doubles(weight) : std::vector<double>();
      std::vector<double> normed = Doubles(x);
      ReferenceHeadNorm(normed, weights, c.head_dim, 1e-6f);
      std::vector<double> rotated = normed;
      ReferenceRope(rotated, cols, c.head_dim, c.first_position, c.base);
      std::vector<double> turned = Doubles(x);
      ReferenceRope(turned, cols, c.head_dim, c.first_position, c.base);
      for (const Isa isa : SupportedIsas()) {
        SCOPED_TRACE(::testing::Message() << IsaName(isa) << " head_dim " << c.head_dim
                                          << " position " << c.first_position);
        Operand w(weight, 4);
        const auto run = [&](const Launch& launch, bool with_weight) {
          Operand in(x, 4);
          RunLaunch(launch, isa, with_weight ? std::vector{&in, &w} : std::vector{&in});
          return in.As<float>();
        };
        ExpectClose(run(LaunchHeadNorm(c.rows, cols, c.head_dim, 1e-6f, weighted), weighted),
                    normed, c.head_dim);
        ExpectClose(run(LaunchHeadNormRope(c.rows, cols, c.head_dim, 1e-6f, weighted,
                                           c.first_position, c.base),
                        weighted),
                    rotated, c.head_dim);
        ExpectClose(run(LaunchRope(c.rows, cols, c.head_dim, c.first_position, c.base), false),
                    turned, c.head_dim);
      }
    }
  }
}

// A row's bits are those of the same position alone, and the fused op's those of its halves.
TEST(HeadNormRope, G6_BitsDoNotDependOnTheChunk) {
  Random random(14);
  const uint32_t rows = 9;
  const uint32_t head_dim = 64;
  const uint32_t cols = 2 * head_dim;
  const std::vector<float> x = random.Values(rows * cols);
  const std::vector<float> weight = random.Values(head_dim);
  for (const Isa isa : SupportedIsas()) {
    Operand w(weight);
    Operand all(x);
    RunLaunch(LaunchHeadNormRope(rows, cols, head_dim, 1e-6f, true, 100, 1e4f), isa, {&all, &w});
    Operand halves(x);
    RunLaunch(LaunchHeadNorm(rows, cols, head_dim, 1e-6f, true), isa, {&halves, &w});
    RunLaunch(LaunchRope(rows, cols, head_dim, 100, 1e4f), isa, {&halves});
    EXPECT_EQ(all, halves) << IsaName(isa);
    const auto together = all.As<float>();
    for (uint32_t i = 0; i < rows; ++i) {
      Operand one(std::vector<float>(x.begin() + i * cols, x.begin() + (i + 1) * cols));
      RunLaunch(LaunchHeadNormRope(1, cols, head_dim, 1e-6f, true, 100 + i, 1e4f), isa, {&one, &w});
      const auto alone = one.As<float>();
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * cols))
          << IsaName(isa);
    }
  }
}

}  // namespace
}  // namespace assay::kernels
