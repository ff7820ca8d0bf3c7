// Products by cooperative matrices against float64. What multiplies needs a device with the path
// and says so where there is none; which kernel is chosen, and the refusal, need none.
#include "kernels/matmul_cooperative/matmul_cooperative.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/vulkan/spirv_kernel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/spy_backend.h"
#include "kernels/vulkan/shaders_testing.h"
#include "tests/conformance/executing_backends.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::Encoded;
using testing::FirstBeyond;
using ::testing::HasSubstr;
using testing::Random;
using testing::Shaders;

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0};

struct Shape {
  uint32_t rows, cols, tokens;
};

// Sums of |x| of each token and of |weights| of each row.
std::vector<double> AbsoluteSums(std::span<const double> values, uint32_t cols) {
  std::vector<double> sums(values.size() / cols);
  for (size_t i = 0; i < values.size(); ++i) sums[i / cols] += std::abs(values[i]);
  return sums;
}

struct Expected {
  std::vector<double> values;
  std::vector<double> tolerances;
};
// By the bound of matmul_cooperative.h; `scale` is by how much a token's values were made smaller.
Expected Reference(const Encoded& weights, const std::vector<float>& x, const Shape& shape,
                   double scale = 1) {
  const size_t count = size_t{shape.tokens} * shape.rows;
  Expected expected{.values = std::vector<double>(count), .tolerances = std::vector<double>(count)};
  ReferenceMatMul(weights.values, Doubles(x), shape.rows, shape.cols, shape.tokens, expected.values,
                  expected.tolerances);
  const std::vector<double> of_x = AbsoluteSums(Doubles(x), shape.cols);
  const std::vector<double> of_weights = AbsoluteSums(weights.values, shape.cols);
  for (size_t i = 0; i < count; ++i) {
    double& bound = expected.tolerances[i];
    bound = 1.1e-3 * bound + 0x1p-24 * (of_x[i / shape.rows] + scale * of_weights[i % shape.rows]) +
            1e-30;
  }
  return expected;
}

class CooperativeMatMul : public Shaders,
                          public ::testing::WithParamInterface<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override {
    Start(std::get<0>(GetParam()));
    plain_ = std::move(ops_);
  }
  // Whether the device has the path; says so where it has not.
  bool Cooperates() {
    auto ops = Ops::Create(device_.get(), {.cooperative_matrix = true});
    if (ops) {
      ops_ = *std::move(ops);
      return true;
    }
    fmt::print("Nothing to multiply with: {}\n", ops.error().ToString());
    return false;
  }
  static DType Type() { return std::get<1>(GetParam()); }

  // The product of `ops`, read back.
  std::vector<float> Product(Ops& ops, const Matrix& weights, const Activations& x) {
    const Matrix out = AsMatrix(OutputOf(x.rows, weights.rows));
    Run(ops.MatMul(*session_, weights, x, out), {out.view});
    return Read<float>(out.view);
  }

  std::unique_ptr<Ops> plain_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CooperativeMatMul);
INSTANTIATE_TEST_SUITE_P(Types, CooperativeMatMul,
                         ::testing::Combine(::testing::ValuesIn(gpu::testing::SpirvBackends()),
                                            ::testing::ValuesIn(kTypes)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  std::string(DTypeName(std::get<1>(tested.param)));
                         });

TEST_P(CooperativeMatMul, AgreesWithFloat64InAnyShapeAtAnyOffsetAndTwiceTheSame) {
  if (!Cooperates()) return;
  // The last three are of many tiles.
  std::vector<Shape> shapes = {
      {1, 32, 16},    {83, 96, 17},   {128, 512, 128}, {130, 1536, 129},  {200, 2336, 40},
      {70, 4096, 65}, {17, 1440, 70}, {8065, 96, 17},  {4100, 1088, 140}, {8064, 1024, 16}};
  if (DTypeBlockSize(Type()) == 1) {
    shapes.insert(shapes.end(),
                  {{37, 37, 19}, {6, 1, 16}, {64, 515, 33}, {129, 36, 130}, {8070, 37, 18}});
  }
  Random random(31);
  for (const Shape& shape : shapes) {
    const auto& [rows, cols, tokens] = shape;
    SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " by " << tokens);
    const Encoded weights = testing::RandomWeights(random, Type(), rows, cols);
    const std::vector<float> x = random.Values(size_t{tokens} * cols);
    const Expected expected = Reference(weights, x, shape);
    for (const auto& [weights_offset, x_offset] :
         {std::pair<uint64_t, uint64_t>{0, 0}, {2, 0}, {1, 4}, {16, 8}}) {
      SCOPED_TRACE(::testing::Message() << "at offsets " << weights_offset << ", " << x_offset);
      const Matrix w = Weights(weights, Type(), rows, cols, weights_offset);
      const Activations in = Input(x, cols, x_offset);
      const std::vector<float> actual = Product(*ops_, w, in);
      const size_t bad = FirstBeyond(Doubles(actual), expected.values,
                                     [&](size_t i) { return expected.tolerances[i]; });
      ASSERT_EQ(bad, expected.values.size()) << actual[bad] << " for " << expected.values[bad]
                                             << " within " << expected.tolerances[bad];
      ASSERT_EQ(Product(*ops_, w, in), actual);
      // In place and from elsewhere, the residual is added to the same products.
      const std::vector<float> residual = random.Values(actual.size());
      const Matrix in_place = F32(residual, rows), out = AsMatrix(OutputOf(tokens, rows));
      Run(ops_->MatMul(*session_, w, in, in_place, in_place.view), {in_place.view});
      Run(ops_->MatMul(*session_, w, in, out, F32(residual, rows).view), {out.view});
      const auto sums = Read<float>(in_place.view);
      ASSERT_EQ(Read<float>(out.view), sums);
      for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], actual[i] + residual[i]);
    }
  }
}

TEST_P(CooperativeMatMul, ATokenBeyondF16IsScaledAndItsNeighboursKeepTheirBits) {
  if (!Cooperates()) return;
  Random random(32);
  // Small tiles and large ones.
  for (const Shape& shape : {Shape{140, 1536, 132}, Shape{4100, 544, 132}}) {
    SCOPED_TRACE(shape.rows);
    const auto& [rows, cols, tokens] = shape;
    const Encoded weights = testing::RandomWeights(random, Type(), rows, cols);
    const std::vector<float> x = random.Values(size_t{tokens} * cols);
    const Matrix w = Weights(weights, Type(), rows, cols, 0);
    const std::vector<float> before = Product(*ops_, w, Input(x, cols, 0));
    for (const float factor : {6e4F, 1e6F, 1e30F}) {
      SCOPED_TRACE(factor);
      std::vector<float> large = x;
      // All of a token of the first tile, and one value of a token of the last.
      for (uint32_t i = 0; i < cols; ++i) large[5 * cols + i] *= factor;
      large[130 * cols + 500] = -factor;
      const std::vector<float> actual = Product(*ops_, w, Input(large, cols, 0));
      const Expected expected = Reference(weights, large, shape, factor * 0x1p-12);
      for (size_t i = 0; i < actual.size(); ++i) {
        const size_t token = i / rows;
        if (token == 5 || token == 130) {
          ASSERT_NEAR(actual[i], expected.values[i], expected.tolerances[i]) << i;
        } else {
          ASSERT_EQ(actual[i], before[i]) << i;
        }
      }
    }
    std::vector<float> broken = x;
    broken[3 * cols + 40] = std::numeric_limits<float>::quiet_NaN();
    broken[9 * cols + 41] = std::numeric_limits<float>::infinity();
    const std::vector<float> actual = Product(*ops_, w, Input(broken, cols, 0));
    for (size_t i = 0; i < actual.size(); ++i) {
      const size_t token = i / rows;
      if (token == 3) {
        ASSERT_TRUE(std::isnan(actual[i])) << i;
      } else if (token == 9) {
        ASSERT_FALSE(std::isfinite(actual[i])) << i;
      } else {
        ASSERT_EQ(actual[i], before[i]) << i;
      }
    }
  }
}

TEST_P(CooperativeMatMul, WeightsBeyondF16CountAsItsLargestNumber) {
  if ((Type() != DType::kF32 && Type() != DType::kBF16) || !Cooperates()) return;
  constexpr uint32_t kRows = 3, kCols = 64, kTokens = 16;
  // 1e6 to the nearest bf16, whose bits are the upper half of a float's.
  constexpr float kLarge = 999424.0F;
  for (const uint64_t offset : {0, 2}) {
    std::vector<std::byte> bytes(size_t{kRows} * kCols * DTypeBlockBytes(Type()));
    for (const auto& [row, value] : {std::pair<size_t, float>{0, kLarge}, {1, -kLarge}}) {
      std::array<std::byte, 4> word;
      std::memcpy(word.data(), &value, sizeof(value));
      const size_t size = DTypeBlockBytes(Type());
      std::memcpy(bytes.data() + row * kCols * size, word.data() + 4 - size, size);
    }
    const Matrix w{o_->Bytes(bytes, offset), Type(), kRows, kCols};
    const auto actual =
        Product(*ops_, w, Input(std::vector<float>(kTokens * kCols, 2.0F), kCols, 0));
    for (uint32_t t = 0; t < kTokens; ++t) {
      EXPECT_EQ(actual[t * kRows], 131008.0F);
      EXPECT_EQ(actual[t * kRows + 1], -131008.0F);
      EXPECT_EQ(actual[t * kRows + 2], 0.0F);
    }
  }
}

TEST_P(CooperativeMatMul, FewTokensKeepTheBitsOfPlainProducts) {
  if (!Cooperates()) return;
  Random random(33);
  const uint32_t rows = 70, cols = 544, few = kCooperativeMinTokens - 1;
  const Encoded weights = testing::RandomWeights(random, Type(), rows, cols);
  const Matrix w = Weights(weights, Type(), rows, cols, 0);
  const Activations in = Input(random.Values(size_t{few} * cols), cols, 0);
  EXPECT_EQ(Product(*ops_, w, in), Product(*plain_, w, in));
}

// Takes SPIR-V, has cooperative matrices, and runs nothing.
class CooperativeNullBackend final : public assay::testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  gpu::DeviceInfo info() const override {
    gpu::DeviceInfo info = ForwardingBackend::info();
    info.code_format = gpu::kSpirvCodeFormat;
    info.features.emplace_back(gpu::kCooperativeMatrixPath);
    return info;
  }
};

// The names of what is dispatched for `tokens` tokens of weights of `type`.
std::vector<std::string> Dispatched(DType type, uint32_t rows, uint32_t tokens, bool residual,
                                    bool cooperative) {
  auto backend = std::make_unique<testing::SpyBackend>(
      std::make_unique<CooperativeNullBackend>(gpu::MakeBackend("null").value()));
  testing::SpyBackend* const spy = backend.get();
  const auto device = gpu::Device::Create(std::move(backend)).value();
  const auto ops = Ops::Create(device.get(), {.cooperative_matrix = cooperative}).value();
  const auto session = device->CreateSession().value();
  testing::Operands o(device.get(), 34);
  const Matrix out = o.F32(tokens, rows);
  EXPECT_TRUE(ops->MatMul(*session, o.Weights(type, rows, 32),
                          o.Input(ActivationFormat::kF32, tokens, 32), out,
                          residual ? out.view : gpu::BufferView{}));
  std::vector<std::string> names;
  for (const testing::SeenDispatch& seen : spy->seen()) names.push_back(seen.kernel);
  return names;
}

TEST(CooperativeChoice, ManyTokensTakeTheKernelWhereItIsAskedFor) {
  using ::testing::ElementsAre;
  const std::vector<std::string> words = {"f32", "f16", "bf16", "q8_0", "q4_0"};
  for (size_t i = 0; i < words.size(); ++i) {
    const auto name = [&](std::string_view op) { return fmt::format("{}.{}", op, words[i]); };
    const DType type = kTypes[i];
    EXPECT_THAT(Dispatched(type, 40, 16, false, true),
                ElementsAre(name("matmul_cooperative_small")));
    EXPECT_THAT(Dispatched(type, 40, 300, true, true),
                ElementsAre(name("matmul_cooperative_small_add")));
    // 63 and 64 large tiles.
    EXPECT_THAT(Dispatched(type, 63 * 128, 16, false, true),
                ElementsAre(name("matmul_cooperative_small")));
    EXPECT_THAT(Dispatched(type, 63 * 128 + 1, 16, false, true),
                ElementsAre(name("matmul_cooperative")));
    EXPECT_THAT(Dispatched(type, 4096, 129, true, true),
                ElementsAre(name("matmul_cooperative_add")));
    EXPECT_THAT(Dispatched(type, 40, 15, false, true), ElementsAre(name("matmul_tile")));
    EXPECT_THAT(Dispatched(type, 40, 300, true, false), ElementsAre(name("matmul_tile_add")));
    EXPECT_THAT(Dispatched(type, 40, 1, false, true), ElementsAre(name("matmul")));
    EXPECT_THAT(Dispatched(type, 40, 1, true, false), ElementsAre(name("matmul_add")));
  }
}

TEST(CooperativeChoice, E12_ADeviceWithoutThePathIsRefusedByName) {
  for (const std::string& name : gpu::testing::PlainBackends()) {
    gpu::BackendOptions options;
    if (name == "vulkan") options.vulkan.disabled = {"cooperative-matrix"};
    const auto device = gpu::Device::Create(gpu::MakeBackend(name, options).value()).value();
    const auto ops = Ops::Create(device.get(), {.cooperative_matrix = true});
    ASSERT_FALSE(ops) << name;
    EXPECT_EQ(ops.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(ops.error().message(), HasSubstr("\"cooperative-matrix\""));
    EXPECT_THAT(ops.error().message(), HasSubstr(device->info().name));
    EXPECT_TRUE(Ops::Create(device.get()));
  }
}

}  // namespace
}  // namespace assay::kernels
