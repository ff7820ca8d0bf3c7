// The forward pass against plain loops of double, and the same bits whatever runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"

#include "support/agreement.h"
#include "support/engine.h"
#include "support/tiny_model.h"

namespace assay::llm {
namespace {

using testing::Engine;
using testing::ExpectAgreesWithReference;
using testing::ExpectSameBits;
using ::testing::HasSubstr;
using testing::LogitsOf;
using testing::SomeIds;

// --- Against the reference
// --------------------------------------------------------------------------------------------

struct Case {
  std::string name;
  testing::TinyModelOptions model;
  // The largest root mean square of the differences, as a share of the logits' spread.
  double tolerance;
};

testing::TinyModelOptions Shape(testing::GgmlType weights, bool experts, bool tied) {
  return testing::TinyShape(weights, experts, tied, /*layers=*/3);
}

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<Case> Cases() {
  // F32, F16 and BF16 weights are multiplied with float activations; the quantised ones with
  // activations of 8 bits.
  const std::vector<std::tuple<std::string, testing::GgmlType, double>> types = {
      {"F32", testing::kF32, 1e-5},
      {"F16", testing::kF16, 1e-5},
      {"BF16", testing::kBF16, 1e-5},
      {"Q8_0", testing::kQ8_0, 0.06},
      {"Q4_0", testing::kQ4_0, 0.06}};
  std::vector<Case> cases;
  for (const auto& [name, type, tolerance] : types) {
    for (const bool experts : {false, true}) {
      for (const bool tied : {false, true}) {
        cases.push_back({name + (experts ? "Experts" : "Dense") + (tied ? "Tied" : "Untied"),
                         Shape(type, experts, tied), tolerance});
      }
    }
  }
  return cases;
}

class ForwardPass : public ::testing::TestWithParam<Case> {};

TEST_P(ForwardPass, AgreesWithTheReference) {
  ExpectAgreesWithReference(Engine(testing::MakeTinyModel(GetParam().model).Build()),
                            /*prompt=*/9, /*count=*/24, GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Types, ForwardPass, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

TEST(ForwardPassTest, AFloat16CacheAddsOnlyItsRounding) {
  ExpectAgreesWithReference(
      Engine(testing::MakeTinyModel(Shape(testing::kF32, true, false)).Build()),
      /*prompt=*/1, /*count=*/24, 5e-3, KvType::kF16);
}

// --- The same bits
// ----------------------------------------------------------------------------------------------------

testing::TinyModelOptions QuantisedExperts() { return Shape(testing::kQ8_0, true, false); }
testing::TinyModelOptions QuantisedDense() { return Shape(testing::kQ4_0, false, true); }

TEST(Determinism, G5_LogitsHaveTheSameBitsAtAnyNumberOfThreads) {
  for (const auto& model : {QuantisedExperts(), QuantisedDense()}) {
    const std::string bytes = testing::MakeTinyModel(model).Build();
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 8}) {
      SCOPED_TRACE(threads);
      const Engine engine(bytes, {.threads = threads});
      const auto decoder = engine.NewDecoder();
      const auto ids = SomeIds(40, engine.model().config().vocabulary);
      const std::vector<float> logits = LogitsOf(*decoder, ids, 12);
      if (first.empty()) first = logits;
      ExpectSameBits(logits, first);
    }
  }
}

TEST(Determinism, G5_LogitsHaveTheSameBitsAtAnyNumberOfLoaders) {
  const std::string bytes = testing::MakeTinyModel(QuantisedExperts()).Build();
  std::vector<float> first;
  for (const int loaders : {1, 2, 4, 8}) {
    for (const bool mmap : {false, true}) {
      SCOPED_TRACE(loaders);
      const Engine engine(bytes, {.loaders = loaders, .mmap = mmap});
      const auto decoder = engine.NewDecoder();
      const auto ids = SomeIds(8, engine.model().config().vocabulary);
      const std::vector<float> logits = LogitsOf(*decoder, ids, 4);
      if (first.empty()) first = logits;
      ExpectSameBits(logits, first);
    }
  }
}

TEST(Determinism, G6_PrefillInChunksOfAnySizeGivesTheBitsOfTokenByToken) {
  for (auto model : {QuantisedExperts(), QuantisedDense(), Shape(testing::kF16, true, true)}) {
    model.context = 300;
    const Engine engine(testing::MakeTinyModel(model).Build());
    const auto ids = SomeIds(270, engine.model().config().vocabulary);
    std::vector<float> first;
    for (const uint32_t chunk : {1U, 7U, 64U, 256U, 257U}) {
      SCOPED_TRACE(chunk);
      const auto decoder = engine.NewDecoder({.prefill_chunk = chunk});
      const std::vector<float> logits = LogitsOf(*decoder, ids, 4);
      if (first.empty()) first = logits;
      ExpectSameBits(logits, first);
    }
  }
}

TEST(Determinism, E5_EveryBarrierModeGivesTheSameBits) {
  for (const auto& model : {QuantisedExperts(), QuantisedDense()}) {
    const Engine engine(testing::MakeTinyModel(model).Build());
    const auto ids = SomeIds(20, engine.model().config().vocabulary);
    const auto manual = engine.NewDecoder({.barriers = gpu::BarrierMode::kManual});
    const auto automatic = engine.NewDecoder({.barriers = gpu::BarrierMode::kAutomatic});
    const auto serial = engine.NewDecoder({.barriers = gpu::BarrierMode::kSerial});
    const std::vector<float> logits = LogitsOf(*manual, ids, 4);
    ExpectSameBits(LogitsOf(*automatic, ids, 4), logits);
    ExpectSameBits(LogitsOf(*serial, ids, 4), logits);
    // The encoder sees exactly the conflicts, so fewer barriers than its own would be a race.
    EXPECT_EQ(manual->counters().barriers, automatic->counters().barriers);
    EXPECT_LT(manual->counters().barriers, serial->counters().barriers);
    EXPECT_EQ(manual->counters().dispatches, automatic->counters().dispatches);
  }
}

TEST(Determinism, E10_PlansGiveTheSameBitsWithFewerBarriers) {
  for (const auto type : {testing::kQ8_0, testing::kQ4_0, testing::kF16, testing::kF32}) {
    for (const bool experts : {false, true}) {
      SCOPED_TRACE(::testing::Message() << type << (experts ? " experts" : " dense"));
      auto model = Shape(type, experts, true);
      // So many that a token's two are not worth going through them expert by expert.
      if (experts) model.experts = 8;
      const std::string bytes = testing::MakeTinyModel(model).Build();
      for (const int threads : {1, 2, 3}) {
        const Engine engine(bytes, {.threads = threads});
        const auto ids = SomeIds(20, engine.model().config().vocabulary);
        for (const KvType kv : {KvType::kF16, KvType::kF32}) {
          // Chunks of several sizes, so that several shapes are planned; the last one is short.
          const auto plain = engine.NewDecoder({.prefill_chunk = 7, .kv = kv, .graph = false});
          const auto planned = engine.NewDecoder({.prefill_chunk = 7, .kv = kv, .graph = true});
          ExpectSameBits(LogitsOf(*planned, ids, 4), LogitsOf(*plain, ids, 4));
          EXPECT_LT(planned->counters().barriers, plain->counters().barriers);
          EXPECT_LT(planned->counters().dispatches, plain->counters().dispatches);
          EXPECT_EQ(plain->token_plan(), nullptr);
          const gpu::PlanReport* const report = planned->token_plan();
          ASSERT_NE(report, nullptr);
          // The model's own order needs what it places, and no more is left to gain by moving.
          EXPECT_EQ(report->barriers_recorded, report->barriers_least);
          EXPECT_LT(report->barriers, report->barriers_least);
          EXPECT_EQ(report->barriers_least - report->barriers, 3U * (experts ? 5 : 2));
        }
      }
    }
  }
}

// Every shape that a decoder forgets is planned again when it comes back.
TEST(Determinism, E10_MoreShapesOfPassesThanAreRemembered) {
  auto model = QuantisedDense();
  model.context = 300;
  const Engine engine(testing::MakeTinyModel(model).Build());
  const auto ids = SomeIds(14 * 15, engine.model().config().vocabulary);
  const auto plain = engine.NewDecoder({.graph = false});
  const auto planned = engine.NewDecoder({.graph = true});
  for (int round = 0; round < 2; ++round) {
    std::span<const TokenId> rest = ids;
    for (size_t count = 1; count <= 14; ++count) {
      ASSERT_TRUE(plain->Feed(rest.first(count)).has_value());
      ASSERT_TRUE(planned->Feed(rest.first(count)).has_value());
      const auto want = plain->Logits().value();
      const auto got = planned->Logits().value();
      ExpectSameBits({got.begin(), got.end()}, {want.begin(), want.end()});
      rest = rest.subspan(count);
    }
    plain->Reset();
    planned->Reset();
  }
}

TEST(Determinism, TwoDecodersOfOneModelDoNotMeet) {
  const Engine engine(testing::MakeTinyModel(QuantisedExperts()).Build());
  const auto ids = SomeIds(12, engine.model().config().vocabulary);
  const auto alone = engine.NewDecoder();
  const std::vector<float> want = LogitsOf(*alone, ids, 6);
  const auto a = engine.NewDecoder();
  const auto b = engine.NewDecoder();
  ASSERT_TRUE(b->Feed(std::span(ids).first(5)).has_value());
  ASSERT_TRUE(a->Feed(std::span(ids).first(7)).has_value());
  ASSERT_TRUE(b->Feed(std::span(ids).subspan(5, 4)).has_value());
  ExpectSameBits(LogitsOf(*a, std::span(ids).subspan(7), 6), want);
}

TEST(Determinism, E6_EveryDispatchTouchesOnlyWhatItDeclares) {
  // In checked mode the device verifies each dispatch and says in Wait what it found.
  for (const auto& model : {QuantisedExperts(), QuantisedDense()}) {
    const std::string bytes = testing::MakeTinyModel(model).Build();
    const Engine engine(bytes, {.checked = true});
    const Engine unchecked(bytes);
    const auto ids = SomeIds(12, engine.model().config().vocabulary);
    const auto decoder = engine.NewDecoder();
    ExpectSameBits(LogitsOf(*decoder, ids, 3), LogitsOf(*unchecked.NewDecoder(), ids, 3));
  }
}

// --- The contract
// -----------------------------------------------------------------------------------------------------

class DecoderTest : public ::testing::Test {
 protected:
  DecoderTest() : engine_(testing::MakeTinyModel(QuantisedExperts()).Build()) {}

  Engine engine_;
};

void ExpectRefused(const Status& status, const std::vector<std::string>& parts) {
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  for (const std::string& part : parts) {
    EXPECT_THAT(status.error().ToString(), HasSubstr(part));
  }
}

TEST_F(DecoderTest, GreedyIsTheLargestLogit) {
  const auto decoder = engine_.NewDecoder();
  const auto ids = SomeIds(10, engine_.model().config().vocabulary);
  for (const TokenId id : ids) {
    ASSERT_TRUE(decoder->Feed({&id, 1}).has_value());
    const auto logits = decoder->Logits().value();
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    EXPECT_EQ(decoder->Greedy().value(), best);
  }
}

TEST(Decoder, E12_LogitsThatAreAllNaNNameTheLayerTheyComeFrom) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"blk.0.attn_norm.weight", "those of layer 0, so it comes from the embedding"},
      {"blk.0.ffn_norm.weight", "those of layer 1, so it comes from layer 0 or"},
      {"blk.1.ffn_norm.weight", "those of layer 2, so it comes from layer 1 or"},
      {"blk.2.ffn_norm.weight", "every layer are finite, so it comes from layer 2"},
      {"output_norm.weight", "from the output's weights"},
  };
  for (const auto& [tensor, where] : cases) {
    testing::TinyModelOptions options = Shape(testing::kQ8_0, /*experts=*/false, /*tied=*/false);
    options.nan_tensor = tensor;
    const Engine engine(testing::MakeTinyModel(options).Build());
    for (const KvType kv : {KvType::kF16, KvType::kF32}) {
      SCOPED_TRACE(tensor);
      const auto decoder = engine.NewDecoder({.kv = kv});
      ASSERT_TRUE(decoder->Feed(SomeIds(5, engine.model().config().vocabulary)).has_value());
      const auto greedy = decoder->Greedy();
      ASSERT_FALSE(greedy.has_value());
      EXPECT_EQ(greedy.error().code(), ErrorCode::kFormat);
      EXPECT_THAT(greedy.error().message(), HasSubstr("logits after position 4 is NaN"));
      EXPECT_THAT(greedy.error().message(), HasSubstr(where));
      const auto logits = decoder->Logits();
      ASSERT_FALSE(logits.has_value());
      EXPECT_EQ(logits.error().ToString(), greedy.error().ToString());
    }
  }
}

TEST_F(DecoderTest, ARefusedFeedLeavesTheStateAsItWas) {
  const auto decoder = engine_.NewDecoder({.context = 16});
  const auto vocabulary = static_cast<TokenId>(engine_.model().config().vocabulary);
  const auto ids = SomeIds(10, engine_.model().config().vocabulary);
  ASSERT_TRUE(decoder->Feed(ids).has_value());
  const auto logits = decoder->Logits().value();
  const std::vector<float> before(logits.begin(), logits.end());

  const std::vector<TokenId> unknown = {1, vocabulary};
  const std::vector<TokenId> negative = {-1};
  ExpectRefused(decoder->Feed({}), {"no ids"});
  ExpectRefused(decoder->Feed(unknown), {std::to_string(vocabulary), "number 2"});
  ExpectRefused(decoder->Feed(negative), {"-1"});
  ExpectRefused(decoder->Feed(std::span(ids).first(7)), {"17", "16"});

  EXPECT_EQ(decoder->position(), 10U);
  const auto after = decoder->Logits().value();
  ExpectSameBits({after.begin(), after.end()}, before);
  ASSERT_TRUE(decoder->Feed(std::span(ids).first(6)).has_value());
  EXPECT_EQ(decoder->position(), 16U);
  ExpectRefused(decoder->Feed(std::span(ids).first(1)), {"17", "16"});
}

TEST_F(DecoderTest, ThereAreNoLogitsBeforeTheFirstId) {
  const auto decoder = engine_.NewDecoder();
  ASSERT_FALSE(decoder->Logits().has_value());
  ASSERT_FALSE(decoder->Greedy().has_value());
  EXPECT_EQ(decoder->Logits().error().code(), ErrorCode::kInvalidArgument);
  const TokenId id = 3;
  ASSERT_TRUE(decoder->Feed({&id, 1}).has_value());
  EXPECT_TRUE(decoder->Logits().has_value());
  decoder->Reset();
  EXPECT_FALSE(decoder->Logits().has_value());
}

TEST_F(DecoderTest, ResetStartsAnew) {
  const auto decoder = engine_.NewDecoder();
  const auto ids = SomeIds(20, engine_.model().config().vocabulary);
  const std::vector<float> want = LogitsOf(*decoder, std::span(ids).first(9), 5);
  decoder->Reset();
  EXPECT_EQ(decoder->position(), 0U);
  ASSERT_TRUE(decoder->Feed(std::span(ids).subspan(9)).has_value());
  decoder->Reset();
  ExpectSameBits(LogitsOf(*decoder, std::span(ids).first(9), 5), want);
}

TEST_F(DecoderTest, FeedingAllocatesNothingOnTheDevice) {
  const auto decoder = engine_.NewDecoder({.prefill_chunk = 8});
  const uint64_t buffers = engine_.device().live_buffers();
  const uint64_t bytes = engine_.device().live_bytes();
  const auto ids = SomeIds(21, engine_.model().config().vocabulary);
  LogitsOf(*decoder, ids, 3);
  EXPECT_EQ(engine_.device().live_buffers(), buffers);
  EXPECT_EQ(engine_.device().live_bytes(), bytes);
}

TEST_F(DecoderTest, AnIdleDecoderGivesItsMemoryBack) {
  const uint64_t bytes = engine_.device().live_bytes();
  engine_.NewDecoder();
  EXPECT_EQ(engine_.device().live_bytes(), bytes);
}

TEST_F(DecoderTest, G7_RefusesOptionsOutsideTheirLimits) {
  const auto longer = Decoder::Create(&engine_.model(), {.context = 129});
  ASSERT_FALSE(longer.has_value());
  EXPECT_EQ(longer.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(longer.error().ToString(), HasSubstr("129"));
  EXPECT_THAT(longer.error().ToString(), HasSubstr("(128)"));
  for (const uint32_t chunk : {0U, 65537U}) {
    const auto decoder = Decoder::Create(&engine_.model(), {.prefill_chunk = chunk});
    ASSERT_FALSE(decoder.has_value());
    EXPECT_EQ(decoder.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(decoder.error().ToString(), HasSubstr(std::to_string(chunk) + ";"));
  }
}

TEST_F(DecoderTest, OneCommandBufferAndOneWaitAPass) {
  const auto decoder = engine_.NewDecoder({.prefill_chunk = 8});
  const auto ids = SomeIds(17, engine_.model().config().vocabulary);
  ASSERT_TRUE(decoder->Feed(ids).has_value());
  EXPECT_EQ(decoder->counters().commits, 3U);
  EXPECT_EQ(decoder->counters().waits, 3U);
  EXPECT_EQ(decoder->counters().encoders_created, decoder->counters().encoders_released);
}

}  // namespace
}  // namespace assay::llm
