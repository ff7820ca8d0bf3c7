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
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/spy_backend.h"
#include "kernels/vulkan/grids.h"
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
double Bound(double magnitude, double of_x, double of_weights) {
  return 1.1e-3 * magnitude + 0x1p-24 * (of_x + of_weights) + 1e-30;
}
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
    bound = Bound(bound, of_x[i / shape.rows], scale * of_weights[i % shape.rows]);
  }
  return expected;
}

struct ExpertShape {
  uint32_t rows, cols, experts, pairs, fan;
  uint32_t tokens() const { return pairs / fan; }
};

// Half of the pairs go to expert 0 and none to expert 1, where there are as many; some to none.
std::vector<int32_t> UnevenIds(Random& random, const ExpertShape& shape) {
  std::vector<int32_t> ids(shape.pairs);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<int32_t>(random.Below(shape.experts));
    ids[i] = i % 2 == 0 || id == 1 ? 0 : id;
    if (i % 23 == 5) ids[i] = static_cast<int32_t>(shape.experts);
    if (i % 23 == 11) ids[i] = i % 2 == 0 ? -1 : std::numeric_limits<int32_t>::min();
  }
  return ids;
}
bool IsOfAny(int32_t id, const ExpertShape& shape) {
  return id >= 0 && static_cast<uint32_t>(id) < shape.experts;
}

// By the bound of matmul_cooperative.h as well, for each pair with the matrix of its expert.
Expected Reference(const Encoded& weights, const std::vector<int32_t>& ids,
                   const std::vector<float>& x, const ExpertShape& shape, double scale = 1) {
  const auto& [rows, cols, experts, pairs, fan] = shape;
  const size_t count = size_t{pairs} * rows;
  Expected expected{.values = std::vector<double>(count), .tolerances = std::vector<double>(count)};
  ReferenceMatMulByExpert(weights.values, ids, Doubles(x), rows, cols, experts, fan,
                          expected.values, expected.tolerances);
  const std::vector<double> of_x = AbsoluteSums(Doubles(x), cols);
  const std::vector<double> of_weights = AbsoluteSums(weights.values, cols);
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = ids[i / rows];
    double& bound = expected.tolerances[i];
    bound = IsOfAny(id, shape)
                ? Bound(bound, of_x[i / rows / fan],
                        scale * of_weights[static_cast<size_t>(id) * rows + i % rows])
                : 0;
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

  // The products of the pairs.
  std::vector<float> Product(Ops& ops, const Matrix& weights, const std::vector<int32_t>& ids,
                             const Activations& x, const ExpertShape& shape) {
    const Matrix out = AsMatrix(OutputOf(shape.pairs, shape.rows));
    Run(ops.MatMulByExpert(*session_, weights, shape.experts, o_->Values(ids), x, out), {out.view});
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
  std::vector<Shape> shapes = {{1, 32, 16},      {83, 96, 17},      {128, 512, 128},
                               {130, 1536, 129}, {200, 2336, 40},   {70, 4096, 65},
                               {17, 1440, 70},   {70, 768, 65},     {33, 2560, 20},
                               {8065, 96, 17},   {4100, 1088, 140}, {8064, 1024, 16}};
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

TEST_P(CooperativeMatMul, ByExpertAgreesWithFloat64UnderAnyLoadAtAnyOffsetAndTwiceTheSame) {
  if (!Cooperates()) return;
  // Experts of many tiles, of a part of one, and of none. The last shape has more pairs than any
  // number that a part of the workgroup could hold.
  std::vector<ExpertShape> shapes = {
      {130, 1536, 6, 400, 4}, {24, 64, 8, 64, 2},   {200, 2336, 5, 48, 3},
      {64, 1024, 3, 300, 1},  {66, 768, 9, 281, 1}, {129, 1792, 4, 130, 2},
      {1, 32, 16, 128, 8},    {128, 512, 1, 65, 1}, {16, 32, 20, 9000, 2}};
  if (DTypeBlockSize(Type()) == 1) {
    shapes.insert(shapes.end(), {{37, 37, 4, 96, 2}, {6, 1, 2, 16, 1}, {64, 515, 7, 140, 4}});
  }
  Random random(35);
  for (const ExpertShape& shape : shapes) {
    const auto& [rows, cols, experts, pairs, fan] = shape;
    SCOPED_TRACE(::testing::Message()
                 << experts << " of " << rows << " x " << cols << " for " << pairs << " pairs");
    const Encoded weights = testing::RandomWeights(random, Type(), experts * rows, cols);
    const std::vector<float> x = random.Values(size_t{shape.tokens()} * cols);
    const std::vector<int32_t> ids = UnevenIds(random, shape);
    const Expected expected = Reference(weights, ids, x, shape);
    for (const auto& [weights_offset, x_offset] :
         {std::pair<uint64_t, uint64_t>{0, 0}, {2, 0}, {1, 4}, {16, 8}}) {
      SCOPED_TRACE(::testing::Message() << "at offsets " << weights_offset << ", " << x_offset);
      const Matrix w = Weights(weights, Type(), experts * rows, cols, weights_offset);
      const Activations in = Input(x, cols, x_offset);
      const std::vector<float> actual = Product(*ops_, w, ids, in, shape);
      const size_t bad = FirstBeyond(Doubles(actual), expected.values,
                                     [&](size_t i) { return expected.tolerances[i]; });
      ASSERT_EQ(bad, expected.values.size())
          << actual[bad] << " for " << expected.values[bad] << " within "
          << expected.tolerances[bad] << ", row " << bad % rows << " of pair " << bad / rows;
      ASSERT_EQ(Product(*ops_, w, ids, in, shape), actual);
    }
  }
}

TEST_P(CooperativeMatMul, ByExpertATokenBeyondF16IsScaledAndItsNeighboursKeepTheirBits) {
  if (!Cooperates()) return;
  Random random(36);
  const ExpertShape shape{100, 1536, 5, 600, 4};
  const auto& [rows, cols, experts, pairs, fan] = shape;
  const Encoded weights = testing::RandomWeights(random, Type(), experts * rows, cols);
  const std::vector<float> x = random.Values(size_t{shape.tokens()} * cols);
  const std::vector<int32_t> ids = UnevenIds(random, shape);
  const Matrix w = Weights(weights, Type(), experts * rows, cols, 0);
  const std::vector<float> before = Product(*ops_, w, ids, Input(x, cols, 0), shape);
  for (const float factor : {6e4F, 1e6F, 1e30F}) {
    SCOPED_TRACE(factor);
    std::vector<float> large = x;
    // All of one token, and one value of another.
    for (uint32_t i = 0; i < cols; ++i) large[5 * cols + i] *= factor;
    large[130 * cols + 500] = -factor;
    const std::vector<float> actual = Product(*ops_, w, ids, Input(large, cols, 0), shape);
    const Expected expected = Reference(weights, ids, large, shape, factor * 0x1p-12);
    for (size_t i = 0; i < actual.size(); ++i) {
      const size_t token = i / rows / fan;
      if (token == 5 || token == 130) {
        ASSERT_NEAR(actual[i], expected.values[i], expected.tolerances[i]) << i;
      } else {
        ASSERT_EQ(actual[i], before[i]) << i;
      }
    }
  }
}

TEST_P(CooperativeMatMul, FewPairsKeepTheBitsOfPlainProducts) {
  if (!Cooperates()) return;
  Random random(37);
  ExpertShape shape{70, 544, 6, 0, 1};
  shape.pairs = kCooperativeMinPairsPerExpert * shape.experts - 1;
  const Encoded weights =
      testing::RandomWeights(random, Type(), shape.experts * shape.rows, shape.cols);
  const Matrix w = Weights(weights, Type(), shape.experts * shape.rows, shape.cols, 0);
  const std::vector<int32_t> ids = UnevenIds(random, shape);
  const Activations in = Input(random.Values(size_t{shape.tokens()} * shape.cols), shape.cols, 0);
  EXPECT_EQ(Product(*ops_, w, ids, in, shape), Product(*plain_, w, ids, in, shape));
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

// What `encode` dispatches on such a device.
template <typename Encode>
std::vector<testing::SeenDispatch> Dispatched(bool cooperative, const Encode& encode) {
  auto backend = std::make_unique<testing::SpyBackend>(
      std::make_unique<CooperativeNullBackend>(gpu::MakeBackend("null").value()));
  testing::SpyBackend* const spy = backend.get();
  const auto device = gpu::Device::Create(std::move(backend)).value();
  const auto ops = Ops::Create(device.get(), {.cooperative_matrix = cooperative}).value();
  const auto session = device->CreateSession().value();
  testing::Operands operands(device.get(), 34);
  EXPECT_TRUE(encode(*ops, *session, operands));
  return spy->seen();
}
std::vector<std::string> Names(const std::vector<testing::SeenDispatch>& dispatches) {
  std::vector<std::string> names;
  for (const testing::SeenDispatch& seen : dispatches) names.push_back(seen.kernel);
  return names;
}

// For `tokens` tokens of weights of `type`.
std::vector<std::string> Dispatched(DType type, uint32_t rows, uint32_t tokens, bool residual,
                                    bool cooperative) {
  return Names(Dispatched(cooperative, [&](Ops& ops, gpu::Session& session, testing::Operands& o) {
    const Matrix out = o.F32(tokens, rows);
    return ops.MatMul(session, o.Weights(type, rows, 32),
                      o.Input(ActivationFormat::kF32, tokens, 32), out,
                      residual ? out.view : gpu::BufferView{});
  }));
}

// For the pairs of experts of 65 rows.
std::vector<testing::SeenDispatch> DispatchedByExpert(DType type, uint32_t experts, uint32_t tokens,
                                                      uint32_t used, bool cooperative) {
  return Dispatched(cooperative, [&](Ops& ops, gpu::Session& session, testing::Operands& o) {
    return ops.MatMulByExpert(session, o.Weights(type, experts * 65, 32), experts,
                              o.Values(o.Ids(tokens * used, experts)),
                              o.Input(ActivationFormat::kF32, tokens, 32),
                              o.F32(tokens * used, 65));
  });
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

TEST(CooperativeChoice, ManyPairsOfAnExpertTakeTheKernelWhereItIsAskedFor) {
  using ::testing::ElementsAre;
  const std::vector<std::string> words = {"f32", "f16", "bf16", "q8_0", "q4_0"};
  for (size_t i = 0; i < words.size(); ++i) {
    const DType type = kTypes[i];
    const std::string plain = "matmul_by_expert." + words[i];
    const std::string cooperative = "matmul_by_expert_cooperative." + words[i];
    // 8 pairs an expert, and one less.
    EXPECT_THAT(Names(DispatchedByExpert(type, 6, 24, 2, true)), ElementsAre(cooperative));
    EXPECT_THAT(Names(DispatchedByExpert(type, 6, 47, 1, true)), ElementsAre(plain));
    EXPECT_THAT(Names(DispatchedByExpert(type, 128, 128, 8, true)), ElementsAre(cooperative));
    EXPECT_THAT(Names(DispatchedByExpert(type, 128, 127, 8, true)), ElementsAre(plain));
    EXPECT_THAT(Names(DispatchedByExpert(type, 6, 300, 2, false)), ElementsAre(plain));
  }
}

TEST(CooperativeChoice, AnExpertHasAWorkgroupForEachTileOfItsRows) {
  const auto seen = DispatchedByExpert(DType::kQ8_0, 6, 300, 2, true);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].grid, (Extent3{CeilDiv(65, kSpirvCooperativeExpertRows), 6, 1}));
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
