#include "kernels/rms_norm/rms_norm.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/testing.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::FirstBeyond;
using testing::Operand;
using testing::Random;
using testing::RunLaunch;

TEST(RmsNorm, AgreesWithFloat64OnEveryIsa) {
  Random random(11);
  for (const uint32_t cols : {1u, 7u, 16u, 31u, 256u, 1027u}) {
    const uint32_t rows = 3;
    const std::vector<float> x = random.Values(size_t{rows} * cols);
    const std::vector<float> weight = random.Values(cols);
    for (const bool weighted : {false, true}) {
      std::vector<double> expected(x.size());
      ReferenceRmsNorm(Doubles(x), weighted ? Doubles(weight) : std::vector<double>(), cols, 1e-6f,
                       expected);
      for (const Isa isa : SupportedIsas()) {
        Operand in(x, 4);
        Operand w(weight, 8);
        Operand out(x.size() * sizeof(float), 4);
        const Launch launch = LaunchRmsNorm(rows, cols, 1e-6f, weighted, ActivationFormat::kF32);
        RunLaunch(launch, isa, weighted ? std::vector{&in, &w, &out} : std::vector{&in, &out});
        const auto actual = Doubles(out.As<float>());
        const size_t bad = FirstBeyond(
            actual, expected, [&](size_t i) { return 2e-6 * std::abs(expected[i]) + 1e-30; });
        ASSERT_EQ(bad, expected.size())
            << IsaName(isa) << " cols " << cols << ": " << actual[bad] << " for " << expected[bad];
      }
    }
  }
}

// Writing kQ8 is writing f32 and rounding it.
TEST(RmsNorm, FusedRoundingIsThatOfQuantize) {
  Random random(12);
  const uint32_t cols = 160;
  const std::vector<float> x = random.Values(2 * cols);
  const std::vector<float> weight = random.Values(cols);
  for (const Isa isa : SupportedIsas()) {
    for (const bool weighted : {false, true}) {
      Operand in(x);
      Operand w(weight);
      Operand plain(x.size() * sizeof(float));
      Operand rounded(2 * QuantizedRowBytes(cols));
      const auto bindings = [&](Operand* out) {
        return weighted ? std::vector{&in, &w, out} : std::vector{&in, out};
      };
      RunLaunch(LaunchRmsNorm(2, cols, 1e-5f, weighted, ActivationFormat::kF32), isa,
                bindings(&plain));
      RunLaunch(LaunchRmsNorm(2, cols, 1e-5f, weighted, ActivationFormat::kQ8), isa,
                bindings(&rounded));
      std::vector<std::byte> expected;
      const auto values = plain.As<float>();
      for (int r = 0; r < 2; ++r) {
        const auto row = testing::QuantizeRow(std::span(values).subspan(r * cols, cols));
        expected.insert(expected.end(), row.begin(), row.end());
      }
      EXPECT_EQ(rounded.As<std::byte>(), expected) << IsaName(isa);
    }
  }
}

}  // namespace
}  // namespace assay::kernels
