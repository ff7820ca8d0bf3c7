// The engine on backends whose kernels are shaders: the forward pass against plain loops of double,
// and the same bits and trace whatever runs it.
#include <atomic>
#include <cstdint>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "support/agreement.h"
#include "support/engine.h"
#include "support/tiny_model.h"
#include "tests/conformance/executing_backends.h"

namespace assay::llm {
namespace {

using testing::Engine;
using testing::ExpectAgreesWithReference;
using testing::ExpectSameBits;
using testing::LogitsOf;
using testing::SomeIds;

testing::TinyModelOptions Shape(testing::GgmlType weights, bool experts) {
  return testing::TinyShape(weights, experts, /*tied=*/experts, /*layers=*/2);
}

std::unique_ptr<gpu::Device> MakeDevice(const std::string& backend,
                                        const gpu::BackendOptions& options = {}) {
  return gpu::Device::Create(gpu::MakeBackend(backend, options).value()).value();
}

class ShaderForwardPass
    : public ::testing::TestWithParam<std::tuple<std::string, testing::GgmlType, bool>> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ShaderForwardPass);

// The shaders multiply every type with float activations.
constexpr double kTolerance = 1e-5;

TEST_P(ShaderForwardPass, G4_AgreesWithTheReferenceForEveryTypeOfWeights) {
  const auto [backend, type, experts] = GetParam();
  ExpectAgreesWithReference(
      Engine(testing::MakeTinyModel(Shape(type, experts)).Build(), MakeDevice(backend)),
      /*prompt=*/9, /*count=*/14, kTolerance);
}

TEST_P(ShaderForwardPass, G4_AgreesWithTheReferenceOnRowsOfManyBlocks) {
  const auto [backend, type, experts] = GetParam();
  ExpectAgreesWithReference(
      Engine(testing::MakeTinyModel(testing::WideShape(type, experts)).Build(),
             MakeDevice(backend)),
      /*prompt=*/37, /*count=*/40, kTolerance);
}

// The cpu backend rounds the activations that meet quantised weights to 8 bits, which no bound of
// the reference tells from a fault as well as this one does on the types that it does not round.
TEST_P(ShaderForwardPass, G4_AgreesWithTheCpuBackendWithAFloat16Cache) {
  const auto [backend, type, experts] = GetParam();
  const bool rounds = type == testing::kQ8_0 || type == testing::kQ4_0;
  const std::string bytes = testing::MakeTinyModel(testing::WideShape(type, experts)).Build();
  std::vector<std::vector<double>> cpu;
  for (const std::string& name : {std::string("cpu"), backend}) {
    const Engine engine(bytes, MakeDevice(name));
    const auto decoder = engine.NewDecoder();
    const auto ids = SomeIds(20, engine.model().config().vocabulary);
    ASSERT_TRUE(decoder->Feed(ids).has_value());
    const auto logits = decoder->Logits().value();
    if (cpu.empty()) {
      cpu.emplace_back(logits.begin(), logits.end());
    } else {
      EXPECT_LT(testing::RelativeError(logits, cpu.front()), rounds ? 0.06 : 1e-3);
    }
  }
}

// Prompts by cooperative matrices: close to those without, the same bits on every run, and from
// there single tokens as ever. A device that lacks them refuses by name.
TEST_P(ShaderForwardPass, CooperativePromptsAgreeAndRepeatTheirBits) {
  const auto [backend, type, experts] = GetParam();
  const Engine engine(testing::MakeTinyModel(Shape(type, experts)).Build(), MakeDevice(backend));
  const DecoderOptions cooperative{.kv = KvType::kF32, .cooperative_matrix = true};
  const auto first = Decoder::Create(&engine.model(), cooperative);
  if (!first) {
    ASSERT_EQ(first.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(first.error().message(), ::testing::HasSubstr("\"cooperative-matrix\""));
    fmt::print("Nothing to multiply with: {}\n", first.error().ToString());
    return;
  }
  const auto plain = engine.NewDecoder({.kv = KvType::kF32});
  const std::vector<TokenId> ids = SomeIds(50, engine.model().config().vocabulary);
  // The prompt, and then three tokens one by one.
  std::span<const TokenId> part = std::span(ids).first(47);
  for (size_t fed = 0; fed < ids.size(); part = std::span(ids).subspan(fed, 1)) {
    ASSERT_TRUE(plain->Feed(part).has_value());
    ASSERT_TRUE((*first)->Feed(part).has_value());
    const auto wanted = plain->Logits().value();
    const std::vector<double> want(wanted.begin(), wanted.end());
    EXPECT_LT(testing::RelativeError((*first)->Logits().value(), want), 1e-2) << fed;
    fed += part.size();
    if (fed == ids.size()) break;
  }
  for (const bool graph : {true, false}) {
    DecoderOptions options = cooperative;
    options.graph = graph;
    ExpectSameBits(LogitsOf(*engine.NewDecoder(options), ids, 3),
                   LogitsOf(*engine.NewDecoder(options), ids, 3));
  }
  // A short prompt is multiplied as without them.
  const auto few = std::span(ids).first(15);
  ExpectSameBits(LogitsOf(*engine.NewDecoder(cooperative), few, 2),
                 LogitsOf(*engine.NewDecoder({.kv = KvType::kF32}), few, 2));
}

INSTANTIATE_TEST_SUITE_P(Types, ShaderForwardPass,
                         ::testing::Combine(::testing::ValuesIn(gpu::testing::SpirvBackends()),
                                            ::testing::Values(testing::kF32, testing::kF16,
                                                              testing::kBF16, testing::kQ8_0,
                                                              testing::kQ4_0),
                                            ::testing::Bool()),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_type" +
                                  std::to_string(static_cast<int>(std::get<1>(tested.param))) +
                                  (std::get<2>(tested.param) ? "_experts" : "_dense");
                         });

TEST(ShaderModel, G1_TypesWithoutAShaderAreRefusedWithTensorAndType) {
  testing::TinyModelOptions options;
  options.hidden = 256;
  options.feed_forward = 256;
  const std::string bytes = testing::MakeTinyModel(options).Build();
  const std::vector<std::pair<uint32_t, std::string>> types = {
      {12, "Q4_K"}, {13, "Q5_K"}, {14, "Q6_K"}};
  for (const std::string& backend : gpu::testing::SpirvBackends()) {
    const auto device = MakeDevice(backend);
    for (const auto& [type, name] : types) {
      const std::string typed = testing::WithType(bytes, "blk.1.ffn_down.weight", 2, type);
      const auto file =
          gguf::File::FromMemory(std::as_bytes(std::span(typed)), "test.gguf").value();
      const auto model = Model::Load(device.get(), file);
      ASSERT_FALSE(model.has_value()) << name;
      EXPECT_EQ(model.error().code(), ErrorCode::kUnsupported);
      for (const std::string& part : {std::string("\"blk.1.ffn_down.weight\""), name}) {
        EXPECT_THAT(model.error().ToString(), ::testing::HasSubstr(part));
      }
      EXPECT_EQ(device->live_buffers(), 0U);
    }
  }
}

class ShaderEngine : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ShaderEngine);
INSTANTIATE_TEST_SUITE_P(Backends, ShaderEngine, ::testing::ValuesIn(gpu::testing::SpirvBackends()),
                         gpu::testing::BackendTestName);

TEST_P(ShaderEngine, G6_PrefillInChunksPlansAndBarrierModesGiveTheSameBits) {
  // The validation layer, which knows the order that Vulkan demands, has nothing to say.
  std::mutex mutex;
  std::vector<std::string> messages;
  gpu::BackendOptions validated;
  validated.vulkan.validation = [&](std::string_view message) {
    const std::lock_guard lock(mutex);
    messages.emplace_back(message);
  };
  for (const auto& model : {Shape(testing::kQ8_0, true), Shape(testing::kQ4_0, false)}) {
    const Engine engine(testing::MakeTinyModel(model).Build(), MakeDevice(GetParam(), validated));
    const auto ids = SomeIds(40, engine.model().config().vocabulary);
    std::vector<float> first;
    for (const uint32_t chunk : {40U, 1U, 3U}) {
      for (const bool graph : {true, false}) {
        SCOPED_TRACE(::testing::Message() << "chunk " << chunk << (graph ? " planned" : ""));
        const auto decoder = engine.NewDecoder({.prefill_chunk = chunk, .graph = graph});
        const std::vector<float> logits = LogitsOf(*decoder, ids, 3);
        if (first.empty()) first = logits;
        ExpectSameBits(logits, first);
      }
    }
    for (const auto mode : {gpu::BarrierMode::kAutomatic, gpu::BarrierMode::kSerial}) {
      const auto decoder = engine.NewDecoder({.barriers = mode});
      ExpectSameBits(LogitsOf(*decoder, ids, 3), first);
    }
    EXPECT_THAT(messages, ::testing::IsEmpty());
  }
}

// More positions than one workgroup of attention takes when tokens come one by one.
TEST_P(ShaderEngine, G6_SharedPositionsGiveTheBitsOfOneChunk) {
  auto model = Shape(testing::kQ8_0, false);
  model.context = 200;
  const Engine engine(testing::MakeTinyModel(model).Build(), MakeDevice(GetParam()));
  const auto ids = SomeIds(150, engine.model().config().vocabulary);
  std::vector<float> first;
  for (const uint32_t chunk : {150U, 1U, 40U}) {
    const auto decoder = engine.NewDecoder({.prefill_chunk = chunk, .graph = chunk == 1});
    const std::vector<float> logits = LogitsOf(*decoder, ids, 3);
    if (first.empty()) first = logits;
    ExpectSameBits(logits, first);
  }
}

// So many kv heads that a token's attention is shared in other parts at the end of the context, and
// takes most of its room in the middle.
TEST_P(ShaderEngine, E10_APlanSpansTheRoomOfEveryPosition) {
  auto model = Shape(testing::kQ8_0, false);
  model.heads = 64;
  model.kv_heads = 64;
  model.head_dim = 8;
  model.context = 1100;
  const Engine engine(testing::MakeTinyModel(model).Build(), MakeDevice(GetParam()));
  const auto ids = SomeIds(200, engine.model().config().vocabulary);
  std::vector<float> first;
  for (const bool graph : {false, true}) {
    const auto decoder = engine.NewDecoder({.graph = graph});
    const std::vector<float> logits = LogitsOf(*decoder, ids, 2);
    if (first.empty()) first = logits;
    ExpectSameBits(logits, first);
  }
}

TEST_P(ShaderEngine, E8_SchedulesAndKernelsFromSourceGiveTheSameBits) {
  const std::string bytes = testing::MakeTinyModel(Shape(testing::kQ8_0, true)).Build();
  std::vector<float> first;
  for (const std::string_view order : {"recorded", "reversed", "late-writes", "random:3"}) {
    SCOPED_TRACE(order);
    gpu::BackendOptions options;
    options.schedule = gpu::ParseSchedule(order).value();
    options.vulkan.kernels_from_source = order == "random:3";
    const Engine engine(bytes, MakeDevice(GetParam(), options));
    const auto decoder = engine.NewDecoder();
    const std::vector<float> logits =
        LogitsOf(*decoder, SomeIds(9, engine.model().config().vocabulary), 2);
    if (first.empty()) first = logits;
    ExpectSameBits(logits, first);
  }
}

TEST_P(ShaderEngine, E12_APassThatIsStoppedLeavesNothingBehind) {
  std::atomic<uint64_t> questions{0};
  std::atomic<uint64_t> after{UINT64_MAX};
  gpu::BackendOptions options;
  options.cancelled = [&] { return questions.fetch_add(1) + 1 >= after.load(); };
  const std::string bytes =
      testing::MakeTinyModel(testing::WideShape(testing::kQ8_0, true)).Build();
  const Engine engine(bytes, MakeDevice(GetParam(), options));
  const auto ids = SomeIds(60, engine.model().config().vocabulary);
  const std::vector<float> want = LogitsOf(*engine.NewDecoder(), ids, 1);
  const uint64_t whole = questions.exchange(0);

  // Twice, since all kernels are there by now.
  const auto decoder = engine.NewDecoder();
  for (const uint64_t question : {uint64_t{1}, uint64_t{3}}) {
    questions = 0;
    after = question;
    const Status fed = decoder->Feed(ids);
    ASSERT_FALSE(fed);
    EXPECT_EQ(fed.error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(decoder->position(), 0U);
    // What follows the question is not asked about, since it does not run.
    EXPECT_LT(questions.load(), whole / 2);
  }
  after = UINT64_MAX;
  ExpectSameBits(LogitsOf(*decoder, ids, 1), want);
}

// One cold run, recorded.
std::string Record(const std::string& backend, const std::string& bytes, const LoadOptions& load,
                   const gpu::BackendOptions& options = {}) {
  std::string text;
  auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  {
    auto device = gpu::Device::Create(record::MakeRecordingBackend(
                                          gpu::MakeBackend(backend, options).value(), writer.get()))
                      .value();
    const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
    const auto model = Model::Load(device.get(), file, load).value();
    const auto decoder = Decoder::Create(model.get()).value();
    LogitsOf(*decoder, SomeIds(5, model->config().vocabulary), 2);
  }
  EXPECT_TRUE(writer->Close().has_value());
  return text;
}

TEST_P(ShaderEngine, T2_TheTraceHasTheSameBytesOnEveryRunAtAnyNumberOfLoaders) {
  const std::string bytes = testing::MakeTinyModel(Shape(testing::kQ8_0, true)).Build();
  const std::string first = Record(GetParam(), bytes, {.loaders = 1});
  EXPECT_NE(first.find("gate_up_by_expert.q8_0.f32"), std::string::npos);
  EXPECT_NE(first.find("attention_split2.f16.f32"), std::string::npos);
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 1}), first);
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 4}), first);
  // A backend that may be stopped hands a command buffer over in parts, which nobody sees.
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 4}, {.cancelled = [] { return false; }}), first);
  // Packed weights cannot be the file's own bytes.
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 4, .mmap = true}), first);
}

}  // namespace
}  // namespace assay::llm
