#include "llm/exponential.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace assay::llm {

namespace {

// 1 / i!, each rounded once from an exact integer below 2^53.
constexpr std::array<double, 14> kInverseFactorial = [] {
  std::array<double, 14> values{};
  int64_t factorial = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) factorial *= static_cast<int64_t>(i);
    values[i] = 1.0 / static_cast<double>(factorial);
  }
  return values;
}();

}  // namespace

double ExpOfNegative(double x) {
  constexpr double kLeast = -700.0;
  if (!(x >= kLeast)) return 0.0;
  // x = steps * ln 2 + rest with |rest| <= ln 2 / 2. ln 2 is taken in two parts, the high one short
  // enough (32 bits) that its product with the step count is exact.
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const auto steps = static_cast<int64_t>(x * kLog2E - 0.5);
  const double rest =
      (x - static_cast<double>(steps) * kLn2High) - static_cast<double>(steps) * kLn2Low;
  // The series of e^rest by Horner's rule; the first term left out is below 5e-18.
  double sum = kInverseFactorial.back();
  for (size_t i = kInverseFactorial.size() - 1; i-- > 0;) sum = sum * rest + kInverseFactorial[i];
  // steps is at least -1010, so that 2^steps is a normal number.
  const auto power = std::bit_cast<double>(static_cast<uint64_t>(steps + 1023) << 52);
  return sum * power;
}

}  // namespace assay::llm
