// Attention whose positions several workgroups share: the bits of one workgroup that takes them
// all, around every place where the positions are cut and far beyond, and what it does with its
// room.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/ops_cases.h"
#include "kernels/vulkan/grids.h"
#include "tests/conformance/executing_backends.h"

namespace assay::kernels {
namespace {

using testing::Doubles;
using testing::Encoded;
using testing::FirstBeyond;
using testing::Operands;
using testing::Random;

constexpr uint32_t kRun = kSpirvSplit * kSpirvSplitsPerRun;

struct Shape {
  uint32_t heads, kv_heads, head_dim;
};
// Of two, four and eight queries a workgroup, and of heads that fill no whole number of them.
constexpr Shape kShapes[] = {{2, 1, 64}, {3, 3, 8}, {8, 2, 128}, {7, 1, 40}, {10, 1, 256}};
constexpr Shape kSmall = {8, 2, 32};

class SharedAttention : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { Start({}); }
  void Start(const gpu::DeviceOptions& options, const gpu::SessionOptions& session = {}) {
    session_.reset();
    o_.reset();
    ops_.reset();
    device_ = gpu::Device::Create(gpu::MakeBackend(GetParam()).value(), options).value();
    ops_ = Ops::Create(device_.get()).value();
    session_ = device_->CreateSession(session).value();
    o_ = std::make_unique<Operands>(device_.get(), 90);
  }

  // Queries and caches of one shape, with room for all positions.
  struct Case {
    Shape shape;
    DType type = DType::kF16;
    uint32_t positions = 0;
    std::vector<float> q;  // Of the last rows.
    Encoded k, v;
    Matrix k_cache, v_cache;
    float scale = 0;
    uint32_t cols() const { return shape.heads * shape.head_dim; }
  };
  Case Make(const Shape& shape, DType type, uint32_t positions, uint32_t queries, uint64_t seed,
            uint64_t offset = 0) {
    Random random(seed);
    Case made;
    made.shape = shape;
    made.type = type;
    made.positions = positions;
    made.q = random.Values(size_t{queries} * made.cols());
    const uint32_t kv_cols = shape.kv_heads * shape.head_dim;
    made.k = testing::RandomWeights(random, type, positions, kv_cols);
    made.v = testing::RandomWeights(random, type, positions, kv_cols);
    made.k_cache = {o_->Bytes(made.k.bytes, offset), type, positions, kv_cols};
    made.v_cache = {o_->Bytes(made.v.bytes, offset), type, positions, kv_cols};
    made.scale = 3.0f / std::sqrt(static_cast<float>(shape.head_dim));
    return made;
  }
  AttentionRoom RoomFor(const Case& of, uint32_t tokens) {
    return o_->Room(ops_->RoomForAttention(tokens, of.shape.heads, of.shape.kv_heads,
                                           of.shape.head_dim, of.positions));
  }
  // Of the queries' rows [first, first + tokens), which stand at `position`.
  Status Encode(const Case& of, uint32_t first, uint32_t tokens, uint32_t position,
                const AttentionRoom& room, const Activations& out) {
    const std::vector<float> rows(of.q.begin() + first * of.cols(),
                                  of.q.begin() + (first + tokens) * of.cols());
    return ops_->Attention(*session_, {o_->Values(rows), DType::kF32, tokens, of.cols()},
                           of.k_cache, of.v_cache, of.shape.head_dim, position, of.scale, out,
                           room);
  }
  void Finish() {
    ASSERT_TRUE(session_->Commit().has_value());
    const Status done = session_->Wait();
    ASSERT_TRUE(done.has_value()) << done.error().ToString();
  }
  std::vector<float> Run(const Case& of, uint32_t first, uint32_t tokens, uint32_t position,
                         const AttentionRoom& room = {}) {
    const Activations out = o_->Output(ActivationFormat::kF32, tokens, of.cols());
    const Status encoded = Encode(of, first, tokens, position, room, out);
    EXPECT_TRUE(encoded.has_value()) << encoded.error().ToString();
    Finish();
    return Read<float>(out.view);
  }
  template <typename T>
  std::vector<T> Read(const gpu::BufferView& view) {
    std::vector<T> values(view.size_bytes() / sizeof(T));
    EXPECT_TRUE(device_->Read(view, std::as_writable_bytes(std::span(values))).has_value());
    return values;
  }
  void ExpectZeros(const AttentionRoom& room) {
    EXPECT_THAT(Read<uint32_t>(room.counters), ::testing::Each(0U));
  }
  static void ExpectAgrees(const Case& of, uint32_t tokens, uint32_t position,
                           const std::vector<float>& got) {
    std::vector<double> expected(got.size());
    ReferenceAttention(Doubles(std::span(of.q).first(got.size())), of.k.values, of.v.values,
                       of.shape.heads, of.shape.kv_heads, of.shape.head_dim, position, of.scale,
                       expected);
    double largest = 0;
    for (const double value : of.v.values) largest = std::max(largest, std::abs(value));
    const auto wide = Doubles(got);
    const size_t bad = FirstBeyond(wide, expected, [&](size_t) { return 1e-5 * largest; });
    ASSERT_EQ(bad, expected.size())
        << tokens << " tokens: " << wide[bad] << " for " << expected[bad];
  }

  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<gpu::Session> session_;
  std::unique_ptr<Operands> o_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedAttention);
INSTANTIATE_TEST_SUITE_P(Backends, SharedAttention,
                         ::testing::ValuesIn(gpu::testing::SpirvBackends()),
                         gpu::testing::BackendTestName);

TEST_P(SharedAttention, AgreesWithFloat64AndG6HasTheBitsOfOneWorkgroup) {
  for (const DType type : {DType::kF16, DType::kF32}) {
    for (const Shape& shape : kShapes) {
      for (const uint64_t offset : {0, 4}) {
        // Rows at odd places are read by code that all forms share.
        if (offset != 0 && shape.head_dim != 40) continue;
        const Case made = Make(shape, type, kRun + 2 * kSpirvSplit, 1, 1, offset);
        const AttentionRoom room = RoomFor(made, 1);
        for (const uint32_t seen :
             {1u, kSpirvSplit - 1, kSpirvSplit, kSpirvSplit + 1, 3 * kSpirvSplit + 40, kRun - 1,
              kRun, kRun + 1, kRun + kSpirvSplit, kRun + kSpirvSplit + 1}) {
          SCOPED_TRACE(::testing::Message()
                       << DTypeName(type) << " " << shape.heads << "/" << shape.kv_heads << " x "
                       << shape.head_dim << " seeing " << seen << " at offset " << offset);
          const auto shared = Run(made, 0, 1, seen - 1, room);
          ASSERT_NO_FATAL_FAILURE(ExpectAgrees(made, 1, seen - 1, shared));
          ASSERT_EQ(shared, Run(made, 0, 1, seen - 1));
          ExpectZeros(room);
        }
      }
    }
  }
}

// More runs than are merged at a time.
TEST_P(SharedAttention, G6_FarBeyond) {
  const Case made = Make(kSmall, DType::kF16, 9 * kRun + 200, 1, 2);
  const AttentionRoom room = RoomFor(made, 1);
  for (const uint32_t seen : {8 * kRun, 8 * kRun + 1, 9 * kRun + 150}) {
    SCOPED_TRACE(seen);
    const auto shared = Run(made, 0, 1, seen - 1, room);
    ASSERT_NO_FATAL_FAILURE(ExpectAgrees(made, 1, seen - 1, shared));
    ASSERT_EQ(shared, Run(made, 0, 1, seen - 1));
    ExpectZeros(room);
  }
}

// Chunks that end in other splits and runs than they begin in; of few tokens and of so many that
// nothing is shared.
TEST_P(SharedAttention, G6_AnyChunkGivesTheBitsOfTokensAlone) {
  constexpr uint32_t kTokens = 150;
  for (const uint32_t position : {0u, kSpirvSplit - 3, kRun - 70, 2 * kRun - 4}) {
    const Case made = Make(kSmall, DType::kF16, position + kTokens, kTokens, 3);
    const AttentionRoom room = RoomFor(made, kTokens);
    const auto together = Run(made, 0, kTokens, position, room);
    ASSERT_NO_FATAL_FAILURE(ExpectAgrees(made, kTokens, position, together));
    for (const uint32_t chunk : {1u, 7u, 60u}) {
      for (uint32_t first = 0; first < kTokens; first += chunk == 60 ? 60 : 29) {
        const uint32_t tokens = std::min(chunk, kTokens - first);
        const auto rows = Run(made, first, tokens, position + first, room);
        const std::vector<float> wanted(together.begin() + first * made.cols(),
                                        together.begin() + (first + tokens) * made.cols());
        ASSERT_EQ(rows, wanted) << tokens << " tokens at " << position + first;
      }
    }
    ExpectZeros(room);
  }
}

// A later token's keys and values are not even multiplied with zero.
TEST_P(SharedAttention, LaterRowsAreNotSeen) {
  // The last two of them share a workgroup.
  constexpr uint32_t kTokens = 4;
  Case made = Make(kSmall, DType::kF32, kRun + 20, kTokens, 4);
  const uint64_t row = made.k.bytes.size() / made.positions;
  std::fill(made.v.bytes.end() - static_cast<ptrdiff_t>(row), made.v.bytes.end(), std::byte{0xFF});
  made.v_cache.view = o_->Bytes(made.v.bytes);
  const auto values = Run(made, 0, kTokens, kRun + 16, RoomFor(made, kTokens));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::isnan(values[i]), i >= 3 * made.cols()) << i;
  }
}

// Two sequences that decode side by side.
TEST_P(SharedAttention, RoomsOfTheirOwnNeedNoBarrier) {
  std::vector<Case> cases;
  std::vector<std::vector<float>> wanted;
  for (const uint64_t seed : {5, 6}) {
    cases.push_back(Make(kSmall, DType::kF16, kRun + 300, 1, seed));
    wanted.push_back(Run(cases.back(), 0, 1, kRun + 299));
  }
  for (const bool own : {true, false}) {
    std::vector<AttentionRoom> rooms = {RoomFor(cases[0], 1), RoomFor(cases[1], 1)};
    if (!own) rooms[1] = rooms[0];
    const uint64_t before = session_->counters().barriers;
    std::vector<Activations> outs;
    for (size_t i = 0; i < cases.size(); ++i) {
      outs.push_back(o_->Output(ActivationFormat::kF32, 1, cases[i].cols()));
      ASSERT_TRUE(Encode(cases[i], 0, 1, kRun + 299, rooms[i], outs[i]).has_value());
    }
    EXPECT_EQ(session_->counters().barriers - before, own ? 0U : 1U);
    Finish();
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(Read<float>(outs[i].view), wanted[i]);
      ExpectZeros(rooms[i]);
    }
  }
}

TEST_P(SharedAttention, E6_ACheckedDeviceFindsNothing) {
  std::vector<float> plain;
  for (const bool checked : {false, true}) {
    Start({.checked = checked});
    const Case made = Make(kSmall, DType::kF16, kRun + 300, 3, 7);
    const AttentionRoom room = RoomFor(made, 3);
    auto values = Run(made, 0, 1, kRun + 200, room);
    const auto few = Run(made, 0, 3, kRun - 2, room);
    values.insert(values.end(), few.begin(), few.end());
    ExpectZeros(room);
    if (!checked) plain = values;
    EXPECT_EQ(values, plain);
  }
}

TEST_P(SharedAttention, RoomThatIsTooSmallIsRefusedWithBothSizes) {
  const Case made = Make(kSmall, DType::kF16, 2 * kRun, 1, 8);
  const AttentionRoomBytes bytes = ops_->RoomForAttention(1, 8, 2, 32, kRun);
  // 16 splits of 8 heads, each 32 values, a maximum and a sum; 2 groups, a counter each and one for
  // the run.
  EXPECT_EQ(bytes.partials, 16U * 8 * 34 * 4);
  EXPECT_EQ(bytes.counters, 2U * 2 * 4);
  const AttentionRoom room = o_->Room(bytes);
  const Activations out = o_->Output(ActivationFormat::kF32, 1, made.cols());
  const auto refusal = [&](const AttentionRoom& given, uint32_t position) {
    const Status refused = Encode(made, 0, 1, position, given, out);
    EXPECT_FALSE(refused.has_value());
    return refused ? std::string() : refused.error().ToString();
  };
  EXPECT_TRUE(Encode(made, 0, 1, kRun - 1, room, out).has_value());
  EXPECT_THAT(refusal(room, kRun),
              ::testing::HasSubstr("room.partials of attention has 17408 bytes "
                                   "where these tokens and positions take "
                                   "18496"));
  const AttentionRoom few{o_->Garbage(2 * bytes.partials), room.counters.Slice(0, 12).value()};
  EXPECT_THAT(refusal({few.partials, room.counters}, 5), ::testing::HasSubstr("multiple of 16"));
  EXPECT_THAT(refusal({room.partials, few.counters}, kRun - 1),
              ::testing::HasSubstr("room.counters of attention has 12 bytes where these tokens and "
                                   "positions take 16"));
  EXPECT_THAT(refusal({room.partials, {}}, 5), ::testing::HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal({room.partials, room.partials.Slice(0, 16).value()}, 5),
              ::testing::HasSubstr("overlaps"));
  EXPECT_EQ(session_->counters().dispatches, 1U);
  Finish();
}

}  // namespace
}  // namespace assay::kernels
