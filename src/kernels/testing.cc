#include "kernels/testing.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/activations.h"
#include "kernels/half.h"
#include "kernels/quantize/quantize.h"
#include "kernels/weight_types.h"

namespace assay::kernels::testing {
namespace {

constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xFF};

uint16_t FloatToBFloat(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

template <typename T>
void Append(std::vector<std::byte>& bytes, const T& value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(value));
}

void AppendQ8Block(Random& random, Encoded& out) {
  const uint16_t scale = FloatToHalf(random.Value() * 0.01f);
  Append(out.bytes, scale);
  for (int i = 0; i < 32; ++i) {
    const int8_t value = static_cast<int8_t>(random.Bits());
    Append(out.bytes, value);
    out.values.push_back(static_cast<double>(HalfToFloat(scale)) * value);
  }
}

void AppendQ4Block(Random& random, Encoded& out) {
  const uint16_t scale = FloatToHalf(random.Value() * 0.1f);
  Append(out.bytes, scale);
  uint8_t packed[16];
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(random.Bits());
  Append(out.bytes, packed);
  const double factor = HalfToFloat(scale);
  for (const uint8_t byte : packed) out.values.push_back(factor * ((byte & 15) - 8));
  for (const uint8_t byte : packed) out.values.push_back(factor * ((byte >> 4) - 8));
}

}  // namespace

float Random::Value() {
  // The sum of four uniform values has variance 4 / 12.
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>(engine_() >> 11) * 0x1p-53 - 0.5;
  return static_cast<float>(sum * std::sqrt(3.0));
}

std::vector<float> Random::Values(size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = Value();
  return values;
}

Operand::Operand(size_t size, size_t offset)
    : storage_(size + offset + 2 * kGuard + 64, kPoison), size_(size) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuard;
  begin_ = kGuard + (64 - address % 64) % 64 + offset;
}

bool Operand::GuardsIntact() const {
  const auto is_poison = [](std::byte byte) { return byte == kPoison; };
  return std::all_of(storage_.begin(), storage_.begin() + static_cast<ptrdiff_t>(begin_),
                     is_poison) &&
         std::all_of(storage_.begin() + static_cast<ptrdiff_t>(begin_ + size_), storage_.end(),
                     is_poison);
}

Encoded RandomWeights(Random& random, DType type, uint32_t rows, uint32_t cols) {
  Encoded out;
  const size_t blocks = size_t{rows} * cols / DTypeBlockSize(type);
  for (size_t i = 0; i < blocks; ++i) {
    switch (type) {
      case DType::kF32: {
        const float value = random.Value();
        Append(out.bytes, value);
        out.values.push_back(value);
        break;
      }
      case DType::kF16: {
        const uint16_t value = FloatToHalf(random.Value());
        Append(out.bytes, value);
        out.values.push_back(HalfToFloat(value));
        break;
      }
      case DType::kBF16: {
        const uint16_t value = FloatToBFloat(random.Value());
        Append(out.bytes, value);
        out.values.push_back(BFloatToFloat(value));
        break;
      }
      case DType::kQ8_0:
        AppendQ8Block(random, out);
        break;
      case DType::kQ4_0:
        AppendQ4Block(random, out);
        break;
      case DType::kI32:
        break;
    }
  }
  return out;
}

std::vector<std::byte> QuantizeRow(std::span<const float> row) {
  std::vector<std::byte> bytes(QuantizedRowBytes(row.size()));
  const QuantizedRow out(bytes.data(), row.size());
  for (size_t b = 0; b < row.size() / kQ8Block; ++b) {
    const auto block = row.subspan(b * kQ8Block, kQ8Block);
    float largest = 0;
    bool finite = true;
    for (const float value : block) {
      finite = finite && std::isfinite(value);
      largest = std::max(largest, std::abs(value));
    }
    const bool zero = largest < kSmallestQuantized;
    out.scales[b] = !finite ? std::numeric_limits<float>::quiet_NaN()
                    : zero  ? 0.0f
                            : largest / 127.0f;
    const float inverse = finite && !zero ? 127.0f / largest : 0.0f;
    out.sums[b] = 0;
    for (size_t i = 0; i < kQ8Block; ++i) {
      const float scaled = finite ? block[i] * inverse : 0.0f;
      const int8_t value = static_cast<int8_t>(std::nearbyint(scaled));
      out.values[b * kQ8Block + i] = value;
      out.sums[b] += value;
    }
  }
  return bytes;
}

Encoded RandomActivations(Random& random, ActivationFormat format, uint32_t rows, uint32_t cols) {
  Encoded out;
  const std::vector<float> values = random.Values(size_t{rows} * cols);
  if (format == ActivationFormat::kF32) {
    for (const float value : values) Append(out.bytes, value);
    out.values = Doubles(values);
    return out;
  }
  for (uint32_t r = 0; r < rows; ++r) {
    const auto row = QuantizeRow(std::span(values).subspan(size_t{r} * cols, cols));
    out.bytes.insert(out.bytes.end(), row.begin(), row.end());
  }
  out.values.resize(values.size());
  DequantizeActivations(out.bytes.data(), rows, cols, out.values);
  return out;
}

std::vector<double> Doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

void RunLaunch(const Launch& launch, Isa isa, const std::vector<Operand*>& bindings) {
  const KernelRow& row = RowOf(launch.kernel);
  ASSERT_EQ(bindings.size(), row.binding_count) << row.name;
  ASSERT_EQ(launch.constant_bytes, row.constant_bytes) << row.name;
  const gpu::CpuWorkgroupFn run = row.pick(isa);
  ASSERT_NE(run, nullptr) << row.name << " for " << IsaName(isa);
  std::vector<std::byte*> pointers;
  std::vector<uint64_t> sizes;
  for (Operand* operand : bindings) {
    pointers.push_back(operand->data());
    sizes.push_back(operand->size());
  }
  Operand shared(launch.shared_bytes);
  gpu::CpuKernelArgs args;
  args.bindings = pointers.data();
  args.binding_bytes = sizes.data();
  args.constants = launch.constants.data();
  args.grid = launch.grid;
  args.shared = {shared.data(), shared.size()};
  for (uint32_t z = launch.grid.z; z-- > 0;) {
    for (uint32_t y = launch.grid.y; y-- > 0;) {
      for (uint32_t x = launch.grid.x; x-- > 0;) {
        std::fill(args.shared.begin(), args.shared.end(), kPoison);
        run(args, {x, y, z});
      }
    }
  }
  EXPECT_TRUE(shared.GuardsIntact()) << row.name << " wrote outside its shared memory";
  for (size_t i = 0; i < bindings.size(); ++i) {
    EXPECT_TRUE(bindings[i]->GuardsIntact()) << row.name << " wrote around binding " << i;
  }
}

}  // namespace assay::kernels::testing
