// Every call that loading and decoding make into the backend fails once, wherever it stands: the
// error arrives with its name, nothing leaks, encoders balance, and the device goes on (E2, E12).
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "assay/llm.h"

#include "support/tiny_model.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"

namespace assay::llm {
namespace {

using gpu::testing::Spy;
using gpu::testing::SpyCall;

// Loads the model and decodes: a prompt in two chunks and two steps.
Result<TokenId> Decode(gpu::Device& device, const std::shared_ptr<const gguf::File>& file) {
  ASSAY_ASSIGN_OR_RETURN(const auto model, Model::Load(&device, file, {.loaders = 2}));
  ASSAY_ASSIGN_OR_RETURN(const auto decoder, Decoder::Create(model.get(), {.prefill_chunk = 3}));
  const TokenId prompt[] = {1, 2, 3, 4, 5};
  ASSAY_TRY(decoder->Feed(prompt));
  TokenId next = 0;
  for (int step = 0; step < 2; ++step) {
    ASSAY_ASSIGN_OR_RETURN(next, decoder->Greedy());
    ASSAY_TRY(decoder->Feed({&next, 1}));
  }
  return decoder->Greedy();
}

class EngineFaultTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(EveryCall, EngineFaultTest,
                         ::testing::Range<size_t>(0, gpu::testing::kSpyCalls));

TEST_P(EngineFaultTest, E2_NothingLeaksAndTheDeviceGoesOn) {
  const auto call = static_cast<SpyCall>(GetParam());
  testing::TinyModelOptions options;
  options.experts = 4;
  options.experts_used = 2;
  const std::string bytes = testing::MakeTinyModel(options).Build();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
  const auto spy = std::make_shared<Spy>();
  const auto device = gpu::Device::Create(gpu::testing::MakeSpyBackend(
                                              gpu::MakeBackend("cpu", {.threads = 1}).value(), spy))
                          .value();
  const auto expect_nothing_alive = [&] {
    const gpu::Counters counters = device->counters();
    EXPECT_EQ(counters.encoders_created, counters.encoders_released);
    EXPECT_EQ(device->live_buffers(), 0u);
    EXPECT_EQ(device->live_bytes(), 0u);
    EXPECT_EQ(spy->buffers(), 0u);
    EXPECT_EQ(spy->command_buffers(), 0u);
    EXPECT_EQ(spy->queues(), 0u);
  };
  // Kernels are built once a device; with them built, each run makes the same calls.
  const bool builds = call == SpyCall::kCreateKernel;
  TokenId want = 0;
  if (!builds) want = Decode(*device, file).value();
  for (size_t n = 1;; ++n) {
    SCOPED_TRACE("call number " + std::to_string(n));
    spy->FailNth(call, builds ? 1 : n);
    const Result<TokenId> got = Decode(*device, file);
    expect_nothing_alive();
    if (!spy->failed()) {
      ASSERT_THAT(got, assay::testing::Succeeds());
      EXPECT_EQ(*got, want);
      break;
    }
    const std::string said = "The call \"" + spy->failed_word() + "\" fails as the test asks.";
    ASSERT_THAT(got, assay::testing::FailsWith(Spy::FailureCode(call), said));
    EXPECT_EQ(got.error().subject(), spy->failed_word());
    if (builds) {
      // The next run builds what this one could not, and one kernel at least.
      ASSERT_THAT(Decode(*device, file), assay::testing::Succeeds());
      break;
    }
  }
  spy->FailNone();
  EXPECT_THAT(Decode(*device, file), assay::testing::Succeeds());
  expect_nothing_alive();
}

}  // namespace
}  // namespace assay::llm
