// What the kernels' tests share: operands between poisoned guards, and a sequential run of one
// launch for any instruction set.
#ifndef ASSAY_KERNELS_TESTING_H_
#define ASSAY_KERNELS_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "assay/kernels.h"

#include "kernels/launch.h"

namespace assay::kernels::testing {

// Reproducible on every machine: the standard distributions are not, so none is used.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Bits() { return engine_(); }
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }
  uint32_t Between(uint32_t low, uint32_t high) { return low + Below(high - low + 1); }
  // Of mean 0 and deviation about 1.
  float Value();
  std::vector<float> Values(size_t count);

 private:
  std::mt19937_64 engine_;
};

// Bytes that begin `offset` bytes behind an aligned address, between guards whose bytes are all
// ones: NaN in every float format, -1 as an integer.
class Operand {
 public:
  explicit Operand(size_t size, size_t offset = 0);
  template <typename T>
  explicit Operand(const std::vector<T>& values, size_t offset = 0)
      : Operand(values.size() * sizeof(T), offset) {
    std::memcpy(data(), values.data(), size());
  }

  std::byte* data() { return storage_.data() + begin_; }
  const std::byte* data() const { return storage_.data() + begin_; }
  size_t size() const { return size_; }
  bool GuardsIntact() const;
  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values(size_ / sizeof(T));
    std::memcpy(values.data(), data(), size_);
    return values;
  }
  bool operator==(const Operand& other) const {
    return size_ == other.size_ && std::memcmp(data(), other.data(), size_) == 0;
  }

 private:
  std::vector<std::byte> storage_;
  size_t begin_ = 0;
  size_t size_ = 0;
};

// Stored values and what they stand for.
struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};
Encoded RandomWeights(Random& random, DType type, uint32_t rows, uint32_t cols);
Encoded RandomActivations(Random& random, ActivationFormat format, uint32_t rows, uint32_t cols);
// Of one row of f32 values; plain code beside the kernels' own.
std::vector<std::byte> QuantizeRow(std::span<const float> row);

std::vector<double> Doubles(std::span<const float> values);

// Runs the workgroups of `launch` one after another, last one first, each with shared memory full
// of garbage; expects all guards to stay.
void RunLaunch(const Launch& launch, Isa isa, const std::vector<Operand*>& bindings);

// The first index at which the two differ by more than tolerance(i), or the size. NaN differs from
// all.
template <typename Tolerance>
size_t FirstBeyond(std::span<const double> actual, std::span<const double> expected,
                   const Tolerance& tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error =
        actual[i] > expected[i] ? actual[i] - expected[i] : expected[i] - actual[i];
    if (!(error <= tolerance(i))) return i;
  }
  return expected.size();
}

}  // namespace assay::kernels::testing

#endif  // ASSAY_KERNELS_TESTING_H_
