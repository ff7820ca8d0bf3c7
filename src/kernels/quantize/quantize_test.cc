#include "kernels/quantize/quantize.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/testing.h"

namespace assay::kernels {
namespace {

using testing::Operand;
using testing::Random;
using testing::RunLaunch;

Operand QuantizeOn(Isa isa, const std::vector<float>& x, uint32_t rows) {
  const uint32_t cols = static_cast<uint32_t>(x.size() / rows);
  Operand in(x, 4);
  Operand out(rows * QuantizedRowBytes(cols), 4);
  RunLaunch(LaunchQuantize(rows, cols, ActivationFormat::kQ8), isa, {&in, &out});
  return out;
}

TEST(Quantize, RoundsLikePlainCodeWithinHalfAStep) {
  Random random(9);
  for (const uint32_t cols : {32u, 96u, 8192u + 64u}) {
    const std::vector<float> x = random.Values(size_t{3} * cols);
    for (const Isa isa : SupportedIsas()) {
      const Operand out = QuantizeOn(isa, x, 3);
      std::vector<std::byte> expected;
      for (int r = 0; r < 3; ++r) {
        const auto row = testing::QuantizeRow(std::span(x).subspan(r * cols, cols));
        expected.insert(expected.end(), row.begin(), row.end());
      }
      ASSERT_EQ(out.As<std::byte>(), expected) << IsaName(isa);
      std::vector<double> values(x.size());
      DequantizeActivations(out.data(), 3, cols, values);
      for (size_t i = 0; i < x.size(); ++i) {
        const ConstQuantizedRow row(out.data() + i / cols * QuantizedRowBytes(cols), cols);
        ASSERT_LE(std::abs(values[i] - x[i]), 0.5 * row.scales[i % cols / kQ8Block] * (1 + 1e-6));
      }
    }
  }
}

TEST(Quantize, ZeroTinyAndNonFiniteBlocks) {
  std::vector<float> x(5 * kQ8Block, 1.0f);
  std::fill(x.begin(), x.begin() + 32, 0.0f);
  std::fill(x.begin() + 32, x.begin() + 64, 1e-38f);
  x[64 + 7] = std::nanf("");
  x[96 + 9] = -std::numeric_limits<float>::infinity();
  for (const Isa isa : SupportedIsas()) {
    const Operand out = QuantizeOn(isa, x, 1);
    const ConstQuantizedRow row(out.data(), x.size());
    EXPECT_EQ(row.scales[0], 0.0f);
    EXPECT_EQ(row.scales[1], 0.0f);
    EXPECT_TRUE(std::isnan(row.scales[2]));
    EXPECT_TRUE(std::isnan(row.scales[3]));
    EXPECT_EQ(row.scales[4], 1.0f / 127.0f);
    for (int i = 0; i < 128; ++i) EXPECT_EQ(row.values[i], 0) << IsaName(isa);
    for (int i = 128; i < 160; ++i) EXPECT_EQ(row.values[i], 127) << IsaName(isa);
    EXPECT_EQ(row.sums[4], 127 * 32);
  }
}

TEST(Quantize, CopiesAsF32) {
  Random random(10);
  const std::vector<float> x = random.Values(3 * 8200);
  Operand in(x);
  Operand out(x.size() * sizeof(float));
  RunLaunch(LaunchQuantize(3, 8200, ActivationFormat::kF32), SupportedIsas().front(), {&in, &out});
  EXPECT_EQ(out.As<float>(), x);
}

}  // namespace
}  // namespace assay::kernels
