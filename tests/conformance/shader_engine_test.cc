// The engine on backends whose kernels are shaders: the forward pass against plain loops of double,
// and the same bits and trace whatever runs it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/llm.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "support/engine.h"
#include "support/reference_model.h"
#include "support/tiny_model.h"
#include "tests/conformance/executing_backends.h"

namespace assay::llm {
namespace {

using testing::Engine;
using testing::LogitsOf;
using testing::SomeIds;

testing::TinyModelOptions Shape(testing::GgmlType weights, bool experts) {
  testing::TinyModelOptions options;
  options.weights = weights;
  options.tied_output = experts;
  options.layers = 2;
  if (experts) {
    options.experts = 5;
    options.experts_used = 2;
    options.feed_forward = 64;
  }
  return options;
}

std::unique_ptr<gpu::Device> MakeDevice(const std::string& backend,
                                        const gpu::BackendOptions& options = {}) {
  return gpu::Device::Create(gpu::MakeBackend(backend, options).value()).value();
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_FALSE(got.empty());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0);
}

// Root mean square of the differences over the standard deviation of the reference.
double RelativeError(std::span<const float> got, const std::vector<double>& want) {
  double mean = 0;
  for (const double value : want) mean += value / static_cast<double>(want.size());
  double squares = 0;
  double spread = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    squares += (got[i] - want[i]) * (got[i] - want[i]);
    spread += (want[i] - mean) * (want[i] - mean);
  }
  return std::sqrt(squares / spread);
}

class ShaderForwardPass
    : public ::testing::TestWithParam<std::tuple<std::string, testing::GgmlType, bool>> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ShaderForwardPass);

TEST_P(ShaderForwardPass, AgreesWithTheReferenceForEveryTypeOfWeights) {
  const auto [backend, type, experts] = GetParam();
  const Engine engine(testing::MakeTinyModel(Shape(type, experts)).Build(), MakeDevice(backend));
  testing::ReferenceModel reference(engine.file());
  const auto decoder = engine.NewDecoder({.kv = KvType::kF32});
  const std::vector<TokenId> ids = SomeIds(14, engine.model().config().vocabulary);
  std::vector<double> want;
  for (size_t i = 0; i < 9; ++i) want = reference.Feed(ids[i]);
  ASSERT_TRUE(decoder->Feed(std::span(ids).first(9)).has_value());
  EXPECT_LT(RelativeError(decoder->Logits().value(), want), 1e-5);
  for (size_t i = 9; i < ids.size(); ++i) {
    want = reference.Feed(ids[i]);
    ASSERT_TRUE(decoder->Feed({&ids[i], 1}).has_value());
    EXPECT_LT(RelativeError(decoder->Logits().value(), want), 1e-5) << i;
  }
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

// One cold run, recorded.
std::string Record(const std::string& backend, const std::string& bytes, const LoadOptions& load) {
  std::string text;
  auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  {
    auto device = gpu::Device::Create(
                      record::MakeRecordingBackend(gpu::MakeBackend(backend).value(), writer.get()))
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
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 1}), first);
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 4}), first);
  // Packed weights cannot be the file's own bytes.
  EXPECT_EQ(Record(GetParam(), bytes, {.loaders = 4, .mmap = true}), first);
}

}  // namespace
}  // namespace assay::llm
