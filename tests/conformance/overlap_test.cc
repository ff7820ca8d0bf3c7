// Passes that are handed to the device in parts: the same bits and the same findings, one Wait, and
// counts that add up.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/hazard.h"
#include "assay/llm.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "support/engine.h"
#include "support/forwarding_backend.h"
#include "support/tiny_model.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay {
namespace {

using assay::testing::Succeeds;

// What `run` does on a backend, recorded and checked.
template <typename Run>
hazard::Report Check(const std::string& backend, std::string* text, const Run& run) {
  auto writer = trace::TraceWriter::CreateInMemory(text, {}).value();
  {
    const auto device = gpu::Device::Create(record::MakeRecordingBackend(
                                                gpu::MakeBackend(backend).value(), writer.get()))
                            .value();
    run(*device);
  }
  EXPECT_THAT(writer->Close(), Succeeds());
  return hazard::CheckTraceText(*text, "overlap", {}).value();
}

struct Decoded {
  std::vector<float> logits;
  gpu::Counters counters;
  std::string trace;
  hazard::Report report;
};

Decoded Decode(const std::string& bytes, const llm::DecoderOptions& options) {
  Decoded decoded;
  decoded.report = Check("cpu", &decoded.trace, [&](gpu::Device& device) {
    const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
    const auto model = llm::Model::Load(&device, file).value();
    const auto decoder = llm::Decoder::Create(model.get(), options).value();
    decoded.logits =
        testing::LogitsOf(*decoder, testing::SomeIds(9, model->config().vocabulary), 3);
    decoded.counters = decoder->counters();
  });
  return decoded;
}

TEST(OverlapTest, G6_PassesInPartsGiveTheSameBitsAndNoHazard) {
  testing::TinyModelOptions model;
  model.layers = 3;
  const std::string bytes = testing::MakeTinyModel(model).Build();
  for (const bool graph : {true, false}) {
    const Decoded whole = Decode(bytes, {.graph = graph});
    EXPECT_EQ(whole.counters.commits, whole.counters.waits);
    for (const uint32_t every : {0U, 1U, 7U, 64U}) {
      SCOPED_TRACE(::testing::Message() << "every " << every << (graph ? " planned" : ""));
      const Decoded parts = Decode(bytes, {.commit_every = every, .graph = graph});
      ASSERT_EQ(parts.logits.size(), whole.logits.size());
      EXPECT_EQ(std::memcmp(parts.logits.data(), whole.logits.data(),
                            whole.logits.size() * sizeof(float)),
                0);
      EXPECT_EQ(parts.trace == whole.trace, every == 0);
      EXPECT_EQ(parts.report.hazards() + parts.report.possible, 0U);
      EXPECT_EQ(parts.report.command_buffers, parts.counters.commits);
      EXPECT_EQ(parts.report.dispatches, parts.counters.dispatches);
      EXPECT_EQ(parts.report.barriers.issued, parts.counters.barriers);
      // Each commit but a pass's last stands where a barrier did.
      EXPECT_EQ(parts.counters.dispatches, whole.counters.dispatches);
      EXPECT_EQ(parts.counters.waits, whole.counters.waits);
      EXPECT_EQ(parts.counters.barriers + parts.counters.commits,
                whole.counters.barriers + whole.counters.commits);
      EXPECT_EQ(parts.counters.encoders_created, parts.counters.encoders_released);
      EXPECT_EQ(parts.counters.commits > whole.counters.commits, every != 0);
      if (every == 1) {
        EXPECT_EQ(parts.counters.barriers, 0U);
      }
    }
  }
}

// The cpu, said to compute apart from the host.
class Apart final : public testing::ForwardingBackend {
 public:
  Apart() : ForwardingBackend(gpu::MakeBackend("cpu").value()) {}
  gpu::DeviceInfo info() const override {
    gpu::DeviceInfo info = ForwardingBackend::info();
    info.overlaps_encoding = true;
    return info;
  }
};

TEST(OverlapTest, G6_ADeviceThatOverlapsEncodingGetsItsPassesInParts) {
  testing::TinyModelOptions model;
  model.layers = 3;
  const testing::Engine engine(testing::MakeTinyModel(model).Build(),
                               gpu::Device::Create(std::make_unique<Apart>()).value());
  const auto parts_of = [&](const llm::DecoderOptions& options) {
    const auto decoder = engine.NewDecoder(options);
    const llm::TokenId id = 1;
    EXPECT_THAT(decoder->Feed({&id, 1}), Succeeds());
    EXPECT_EQ(decoder->counters().waits, 1U);
    return decoder->counters().commits;
  };
  EXPECT_GT(parts_of({}), 1U);
  EXPECT_EQ(parts_of({.commit_every = 0}), 1U);
  // Barriers are numbered through the pass.
  EXPECT_EQ(parts_of({.drop_barrier = 1}), 1U);
}

// A program that lacks barriers shows the same hazards however it is cut: a commit comes only where
// a barrier stands.
TEST(OverlapTest, H1_CommitsHideNoMissingBarrier) {
  uint64_t found = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::vector<hazard::Report> reports;
    for (const uint32_t every : {0U, 1U, 7U, 64U}) {
      std::string text;
      reports.push_back(Check("null", &text, [&](gpu::Device& device) {
        gpu::testing::RegisterTestKernels(device);
        const gpu::Buffer buffer = gpu::testing::MakeBuffer(device, 1024);
        const auto session =
            device.CreateSession({.barriers = gpu::BarrierMode::kManual, .commit_every = every})
                .value();
        uint32_t state = seed;
        const auto pick = [&](uint32_t below) {
          state = state * 1664525U + 1013904223U;
          return (state >> 16) % below;
        };
        for (int i = 0; i < 100; ++i) {
          const auto dispatch =
              gpu::testing::Bump(device, gpu::testing::View(buffer, uint64_t{pick(16)} * 64, 64));
          ASSERT_THAT(session->Dispatch(dispatch.get()), Succeeds());
          if (pick(4) == 0) {
            ASSERT_THAT(session->Barrier(), Succeeds());
          }
        }
        ASSERT_THAT(session->Commit(), Succeeds());
        ASSERT_THAT(session->Wait(), Succeeds());
      }));
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " every " << every);
      EXPECT_EQ(reports.back().certain, reports.front().certain);
      EXPECT_EQ(reports.back().findings.size(), reports.front().findings.size());
    }
    found += reports.front().hazards();
  }
  EXPECT_GT(found, 100U);
}

}  // namespace
}  // namespace assay
