// The checks of Ops: each misuse is refused with the operand's name and both sizes, and encodes
// nothing.
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/backend.h"
#include "kernels/ops_cases.h"

namespace assay::kernels {
namespace {

using ::testing::HasSubstr;
using testing::Operands;

constexpr ActivationFormat kF32Format = ActivationFormat::kF32;
constexpr ActivationFormat kQ8Format = ActivationFormat::kQ8;

class OpsTest : public ::testing::Test {
 protected:
  OpsTest()
      : device_(gpu::Device::Create(gpu::MakeBackend("cpu", {.threads = 1}).value()).value()),
        ops_(Ops::Create(device_.get()).value()),
        session_(device_->CreateSession().value()),
        o_(device_.get(), 90) {}

  void ExpectRefused(const Status& status, std::string_view operand, std::string_view text) {
    ASSERT_FALSE(status.has_value()) << operand << ": " << text;
    EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().subject(), operand);
    EXPECT_THAT(status.error().message(), HasSubstr(std::string(text)));
    EXPECT_EQ(session_->counters().dispatches, 0u);
  }
  Matrix OutF32(uint32_t rows, uint32_t cols) {
    return {o_.Output(kF32Format, rows, cols).view, DType::kF32, rows, cols};
  }
  static Matrix Shaped(Matrix matrix, uint32_t rows, uint32_t cols) {
    matrix.rows = rows;
    matrix.cols = cols;
    return matrix;
  }

  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<gpu::Session> session_;
  Operands o_;
};

TEST_F(OpsTest, CreateTwiceOnOneDeviceRegistersOnce) {
  EXPECT_TRUE(Ops::Create(device_.get()).has_value());
  EXPECT_FALSE(RegisterKernels(*device_).has_value());
}

TEST_F(OpsTest, KernelsMayBeRegisteredAhead) {
  auto device = gpu::Device::Create(gpu::MakeBackend("cpu", {.threads = 1}).value()).value();
  ASSERT_TRUE(RegisterKernels(*device).has_value());
  EXPECT_TRUE(Ops::Create(device.get()).has_value());
  EXPECT_EQ(device->kernels().Names().size(), KernelTable().size());
}

TEST_F(OpsTest, FormatsOfInputs) {
  EXPECT_EQ(ops_->InputFormat(DType::kF16), kF32Format);
  EXPECT_EQ(ops_->InputFormat(DType::kQ4_0), kQ8Format);
  EXPECT_TRUE(ops_->SupportsWeights(DType::kBF16));
  EXPECT_FALSE(ops_->SupportsWeights(DType::kI32));
  EXPECT_EQ(RowBytes(DType::kQ8_0, 64).value(), 68u);
  EXPECT_EQ(RowBytes(DType::kQ4_0, 64).value(), 36u);
  EXPECT_EQ(RowBytes(DType::kQ8_0, 65).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ActivationBytes(kF32Format, 3, 64), 3u * 64 * 4);
  EXPECT_EQ(ActivationBytes(kQ8Format, 3, 64), 3u * 80);
}

TEST_F(OpsTest, ViewsMustFitTheirShapes) {
  const Matrix x = o_.F32(2, 32);
  ExpectRefused(ops_->RmsNorm(*session_, Shaped(x, 3, 32), {}, 0, o_.Output(kF32Format, 3, 32)),
                "x", "has 256 bytes where its shape takes 384");
  ExpectRefused(ops_->RmsNorm(*session_, Shaped(x, 0, 32), {}, 0, o_.Output(kF32Format, 2, 32)),
                "x", "has no elements (0 x 32)");
  ExpectRefused(ops_->RmsNorm(*session_, {}, {}, 0, o_.Output(kF32Format, 2, 32)), "x",
                "has no elements");
  Matrix empty = x;
  empty.view = {};
  ExpectRefused(ops_->RmsNorm(*session_, empty, {}, 0, o_.Output(kF32Format, 2, 32)), "x",
                "is empty");
  Matrix half = x;
  half.type = DType::kF16;
  ExpectRefused(ops_->RmsNorm(*session_, half, {}, 0, o_.Output(kF32Format, 2, 32)), "x",
                "has type F16 where F32 is needed");
  Matrix odd = x;
  odd.view = o_.Bytes(std::vector<std::byte>(256), 1);
  ExpectRefused(ops_->RmsNorm(*session_, odd, {}, 0, o_.Output(kF32Format, 2, 32)), "x",
                "not a multiple of 4");
}

TEST_F(OpsTest, EmbeddingRefusesMisfits) {
  const Matrix table = o_.Weights(DType::kQ8_0, 5, 64);
  ExpectRefused(ops_->Embedding(*session_, table, o_.Garbage(12), OutF32(3, 32)), "out.cols",
                "(32)");
  ExpectRefused(ops_->Embedding(*session_, table, o_.Garbage(8), OutF32(3, 64)), "ids",
                "has 8 bytes");
  ExpectRefused(ops_->Embedding(*session_, Shaped(table, 5, 60), o_.Garbage(12), OutF32(3, 60)),
                "table", "60 columns, which is not a multiple of the 32 of a Q8_0 block");
  Matrix ids_table = table;
  ids_table.type = DType::kI32;
  ExpectRefused(ops_->Embedding(*session_, ids_table, o_.Garbage(12), OutF32(3, 64)), "table",
                "I32");
}

TEST_F(OpsTest, RmsNormAndQuantizeRefuseMisfits) {
  const Matrix x = o_.F32(2, 40);
  ExpectRefused(ops_->RmsNorm(*session_, x, {}, 0, o_.Output(kF32Format, 2, 64)), "out",
                "is 2 x 64 where x is 2 x 40");
  ExpectRefused(ops_->RmsNorm(*session_, x, o_.Garbage(36 * 4), 0, o_.Output(kF32Format, 2, 40)),
                "weight", "has 144 bytes where its shape takes 160");
  ExpectRefused(ops_->RmsNorm(*session_, x, {}, -1.0f, o_.Output(kF32Format, 2, 40)), "eps",
                "(-1)");
  ExpectRefused(ops_->RmsNorm(*session_, x, {}, 0, {x.view, kF32Format, 2, 40}), "out",
                "overlaps operand x");
  ExpectRefused(ops_->Quantize(*session_, x, {o_.Garbage(100), kQ8Format, 2, 40}), "out",
                "not a multiple of the 32");
  ExpectRefused(ops_->Quantize(*session_, x, o_.Output(kF32Format, 1, 40)), "out",
                "is 1 x 40 where x is 2 x 40");
}

TEST_F(OpsTest, MatMulRefusesMisfits) {
  const Matrix w = o_.Weights(DType::kQ8_0, 6, 64);
  const Activations x = o_.Input(kQ8Format, 2, 64);
  ExpectRefused(ops_->MatMul(*session_, w, o_.Input(kF32Format, 2, 64), OutF32(2, 6)), "x",
                "another format than weights of type Q8_0");
  ExpectRefused(ops_->MatMul(*session_, o_.Weights(DType::kF16, 6, 64), x, OutF32(2, 6)), "x",
                "another format");
  ExpectRefused(ops_->MatMul(*session_, w, o_.Input(kQ8Format, 2, 96), OutF32(2, 6)), "x.cols",
                "(96)");
  ExpectRefused(ops_->MatMul(*session_, w, x, OutF32(2, 7)), "out.cols", "(7)");
  ExpectRefused(ops_->MatMul(*session_, w, x, OutF32(3, 6)), "out.rows", "(3)");
  ExpectRefused(ops_->MatMul(*session_, w, x, OutF32(2, 6), o_.Garbage(44)), "residual",
                "has 44 bytes");
  // Half of out is no residual.
  const gpu::BufferView both = o_.Garbage(2 * 6 * 4 + 24);
  const Matrix out{both.Slice(0, 48).value(), DType::kF32, 2, 6};
  ExpectRefused(ops_->MatMul(*session_, w, x, out, both.Slice(24, 48).value()), "out",
                "overlaps operand residual");
}

TEST_F(OpsTest, MatMulByExpertRefusesMisfits) {
  const Matrix w = o_.Weights(DType::kF32, 12, 16);
  const Activations x = o_.Input(kF32Format, 2, 16);
  const gpu::BufferView ids = o_.Garbage(4 * 4);
  ExpectRefused(ops_->MatMulByExpert(*session_, w, 5, ids, x, OutF32(4, 3)), "weights",
                "do not split into 5");
  ExpectRefused(ops_->MatMulByExpert(*session_, w, 0, ids, x, OutF32(4, 3)), "weights",
                "into 0 experts");
  ExpectRefused(ops_->MatMulByExpert(*session_, w, 4, ids, x, OutF32(4, 4)), "out.cols", "(4)");
  ExpectRefused(ops_->MatMulByExpert(*session_, w, 4, ids, x, OutF32(3, 3)), "out",
                "multiple of the rows of x (2)");
  ExpectRefused(ops_->MatMulByExpert(*session_, w, 4, o_.Garbage(12), x, OutF32(4, 3)),
                "expert_ids", "has 12 bytes");
  ExpectRefused(
      ops_->MatMulByExpert(*session_, w, 4, ids, o_.Input(kF32Format, 2, 20), OutF32(4, 3)),
      "x.cols", "(20)");
}

TEST_F(OpsTest, HeadOpsRefuseMisfits) {
  const Matrix x = o_.F32(2, 48);
  ExpectRefused(ops_->HeadNorm(*session_, x, 20, {}, 0), "x", "not a multiple of head_dim (20)");
  ExpectRefused(ops_->HeadNorm(*session_, x, 0, {}, 0), "x", "head_dim (0)");
  ExpectRefused(ops_->HeadNorm(*session_, x, 24, o_.Garbage(92), 0), "weight", "has 92 bytes");
  ExpectRefused(ops_->Rope(*session_, x, 3, 0, 1e4f), "head_dim", "(3) is odd");
  ExpectRefused(ops_->Rope(*session_, x, 24, 0, 0.0f), "base", "(0)");
  ExpectRefused(ops_->Rope(*session_, x, 24, 0x7FFFFFFF, 1e4f), "first_position",
                "passes the largest position");
  ExpectRefused(ops_->HeadNormRope(*session_, x, 24, x.view.Slice(0, 96).value(), 0, 0, 1e4f), "x",
                "overlaps operand weight");
}

TEST_F(OpsTest, CacheOpsRefuseMisfits) {
  const Matrix k = o_.Cache(DType::kF16, 10, 64);
  const Matrix v = o_.Cache(DType::kF16, 10, 64);
  const Matrix rows = o_.F32(3, 64);
  ExpectRefused(ops_->KvAppend(*session_, rows, o_.F32(2, 64), 0, k, v), "v",
                "is 2 x 64 where k is 3 x 64");
  ExpectRefused(ops_->KvAppend(*session_, rows, o_.F32(3, 64), 8, k, v), "k",
                "from position 8, which pass the cache's 10");
  ExpectRefused(ops_->KvAppend(*session_, rows, o_.F32(3, 64), 0, k, o_.Cache(DType::kF32, 10, 64)),
                "v_cache", "F32");
  ExpectRefused(
      ops_->KvAppend(*session_, rows, o_.F32(3, 64), 0, o_.Weights(DType::kBF16, 10, 64), v),
      "k_cache", "BF16");
  ExpectRefused(ops_->KvAppend(*session_, rows, o_.F32(3, 64), 0, k, k), "v_cache",
                "overlaps operand k_cache");
  ExpectRefused(ops_->KvAppend(*session_, o_.F32(3, 32), o_.F32(3, 32), 0, k, v), "k.cols", "(32)");

  const Matrix q = o_.F32(2, 128);
  const auto attend = [&](const Matrix& query, uint32_t head_dim, uint32_t position,
                          const Activations& out) {
    return ops_->Attention(*session_, query, k, v, head_dim, position, 1.0f, out);
  };
  const Activations out = o_.Output(kF32Format, 2, 128);
  ExpectRefused(attend(q, 12, 0, out), "head_dim", "(12)");
  ExpectRefused(attend(q, 264, 0, out), "head_dim", "(264)");
  ExpectRefused(attend(q, 24, 0, out), "x", "head_dim (24)");
  ExpectRefused(attend(q, 64, 9, out), "q", "from position 9, which pass the cache's 10");
  ExpectRefused(attend(o_.F32(2, 96), 32, 0, o_.Output(kF32Format, 2, 96)), "q", "has 3 heads");
  ExpectRefused(attend(q, 64, 0, o_.Output(kF32Format, 2, 64)), "out", "is 2 x 64");
  ExpectRefused(attend(o_.F32(2, 64), 8, 0, o_.Output(kQ8Format, 2, 64)), "out",
                "write f32 and quantize");
  ExpectRefused(
      ops_->Attention(*session_, q, k, v, 64, 0, std::numeric_limits<float>::infinity(), out),
      "scale", "inf");
}

TEST_F(OpsTest, ElementOpsRefuseMisfits) {
  const Matrix a = o_.F32(2, 32);
  ExpectRefused(ops_->Add(*session_, a, o_.F32(2, 31), OutF32(2, 32)), "b",
                "is 2 x 31 where a is 2 x 32");
  ExpectRefused(ops_->Mul(*session_, a, o_.F32(2, 32), OutF32(1, 32)), "out", "is 1 x 32");
  ExpectRefused(ops_->SiluMul(*session_, a, o_.F32(1, 32), o_.Output(kQ8Format, 2, 32)), "up",
                "is 1 x 32");
  const gpu::BufferView wide = o_.Garbage(65 * 4);
  const Matrix low{wide.Slice(0, 256).value(), DType::kF32, 2, 32};
  const Matrix high{wide.Slice(4, 256).value(), DType::kF32, 2, 32};
  ExpectRefused(ops_->Add(*session_, low, a, high), "out", "overlaps operand a");
}

TEST_F(OpsTest, RoutingOpsRefuseMisfits) {
  const Matrix logits = o_.F32(2, 8);
  ExpectRefused(ops_->Route(*session_, logits, 9, true, o_.Garbage(72), o_.Garbage(72)), "used",
                "(9)");
  ExpectRefused(ops_->Route(*session_, logits, 0, true, o_.Garbage(4), o_.Garbage(4)), "used",
                "(0)");
  ExpectRefused(ops_->Route(*session_, logits, 2, true, o_.Garbage(12), o_.Garbage(16)),
                "expert_ids", "has 12 bytes");
  ExpectRefused(ops_->Route(*session_, logits, 2, true, o_.Garbage(16), o_.Garbage(12)),
                "expert_weights", "has 12 bytes");
  const Matrix x = o_.F32(4, 10);
  ExpectRefused(ops_->WeightedSum(*session_, x, o_.Garbage(16), 3, OutF32(2, 10)), "x.rows", "(6)");
  ExpectRefused(ops_->WeightedSum(*session_, x, o_.Garbage(12), 2, OutF32(2, 10)), "expert_weights",
                "has 12 bytes");
  ExpectRefused(ops_->WeightedSum(*session_, x, o_.Garbage(16), 2, OutF32(2, 11)), "x.cols",
                "(10)");
  ExpectRefused(ops_->ArgMax(*session_, logits, o_.Garbage(4)), "out",
                "has 4 bytes where its shape takes 8");
}

}  // namespace
}  // namespace assay::kernels
