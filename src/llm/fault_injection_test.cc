// Every call that loading and decoding make into the backend fails once, wherever it stands: the
// error arrives with its name, nothing leaks, encoders balance, and the device goes on (E2, E12).
#include <atomic>
#include <memory>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "assay/llm.h"

#include "support/forwarding_backend.h"
#include "support/tiny_model.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"

namespace assay::llm {
namespace {

using gpu::testing::Spy;
using gpu::testing::SpyCall;

// Loads the model and decodes: a prompt in two chunks and two steps, each pass in one command
// buffer or in many.
Result<TokenId> Decode(gpu::Device& device, const std::shared_ptr<const gguf::File>& file,
                       uint32_t commit_every) {
  ASSAY_ASSIGN_OR_RETURN(const auto model, Model::Load(&device, file, {.loaders = 2}));
  ASSAY_ASSIGN_OR_RETURN(
      const auto decoder,
      Decoder::Create(model.get(), {.prefill_chunk = 3, .commit_every = commit_every}));
  const TokenId prompt[] = {1, 2, 3, 4, 5};
  ASSAY_TRY(decoder->Feed(prompt));
  TokenId next = 0;
  for (int step = 0; step < 2; ++step) {
    ASSAY_ASSIGN_OR_RETURN(next, decoder->Greedy());
    ASSAY_TRY(decoder->Feed({&next, 1}));
  }
  return decoder->Greedy();
}

class EngineFaultTest : public ::testing::TestWithParam<std::tuple<size_t, uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(EveryCall, EngineFaultTest,
                         ::testing::Combine(::testing::Range<size_t>(0, gpu::testing::kSpyCalls),
                                            ::testing::Values(0U, 7U)));

TEST_P(EngineFaultTest, E2_NothingLeaksAndTheDeviceGoesOn) {
  const auto call = static_cast<SpyCall>(std::get<0>(GetParam()));
  const uint32_t commit_every = std::get<1>(GetParam());
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
  if (!builds) want = Decode(*device, file, commit_every).value();
  for (size_t n = 1;; ++n) {
    SCOPED_TRACE("call number " + std::to_string(n));
    spy->FailNth(call, builds ? 1 : n);
    const Result<TokenId> got = Decode(*device, file, commit_every);
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
      ASSERT_THAT(Decode(*device, file, commit_every), assay::testing::Succeeds());
      break;
    }
  }
  spy->FailNone();
  EXPECT_THAT(Decode(*device, file, commit_every), assay::testing::Succeeds());
  expect_nothing_alive();
}

// A device whose free memory the test chooses, and whose buffers of some label are not to be had.
class ShortOfMemory final : public assay::testing::ForwardingBackend {
 public:
  ShortOfMemory(gpu::DeviceMemory memory, std::string refused)
      : ForwardingBackend(gpu::MakeBackend("cpu", {.threads = 1}).value()),
        memory_(memory),
        refused_(std::move(refused)) {}

  gpu::DeviceMemory memory() const override { return memory_; }
  Result<std::unique_ptr<gpu::BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    ++asked_;
    if (refused_.empty() || desc.label.find(refused_) == std::string::npos) {
      return ForwardingBackend::CreateBuffer(desc);
    }
    return Fail(ErrorCode::kAllocation, desc.label, "There is no more.");
  }
  int asked() const { return asked_; }

 private:
  gpu::DeviceMemory memory_;
  std::string refused_;
  std::atomic<int> asked_{0};
};

constexpr uint64_t kMib = uint64_t{1} << 20;

std::string LongModel() {
  testing::TinyModelOptions options;
  options.context = 1 << 20;
  return testing::MakeTinyModel(options).Build();
}

// The cpu backend, with a limit of small devices.
class BindsLittle final : public assay::testing::ForwardingBackend {
 public:
  BindsLittle() : ForwardingBackend(gpu::MakeBackend("cpu", {.threads = 1}).value()) {}
  gpu::DeviceInfo info() const override {
    gpu::DeviceInfo info = ForwardingBackend::info();
    info.max_binding_bytes = kMost;
    return info;
  }
  static constexpr uint64_t kMost = 6 * kMib;
};

class MemoryTest : public ::testing::Test {
 protected:
  Status Try(gpu::DeviceMemory memory, const std::string& refused,
             const DecoderOptions& options = {}) {
    auto backend = std::make_unique<ShortOfMemory>(memory, refused);
    backend_ = backend.get();
    device_ = gpu::Device::Create(std::move(backend)).value();
    ASSAY_ASSIGN_OR_RETURN(const auto model, Model::Load(device_.get(), file_));
    ASSAY_TRY(Decoder::Create(model.get(), options));
    return {};
  }

  const std::string bytes_ = LongModel();
  const std::shared_ptr<const gguf::File> file_ =
      gguf::File::FromMemory(std::as_bytes(std::span(bytes_)), "test.gguf").value();
  ShortOfMemory* backend_ = nullptr;
  std::unique_ptr<gpu::Device> device_;
};

TEST_F(MemoryTest, E12_AModelLargerThanWhatIsFreeIsRefusedBeforeItIsRead) {
  const gpu::DeviceMemory scarce = {
      .total_bytes = 8 * kMib, .free_bytes = 1 << 10, .overcommits = true};
  const Status refused = Try(scarce, "");
  EXPECT_THAT(refused, assay::testing::FailsWith(ErrorCode::kAllocation,
                                                 "The weights of \"test.gguf\" take 0."));
  EXPECT_THAT(refused, assay::testing::FailsWith(ErrorCode::kAllocation,
                                                 "has 8.0 MiB, of which 0.0 MiB are free."));
  EXPECT_EQ(backend_->asked(), 0);
  // Where the driver itself says what does not fit, its word counts.
  EXPECT_THAT(Try({.total_bytes = 8 * kMib, .free_bytes = 1 << 10}, "", {.context = 16}),
              assay::testing::Succeeds());
}

TEST_F(MemoryTest, E12_ACacheThatNoDispatchMayBindIsRefusedWithThePositionsThatItMay) {
  device_ = gpu::Device::Create(std::make_unique<BindsLittle>()).value();
  const auto model = Model::Load(device_.get(), file_).value();
  const Status refused = [&]() -> Status {
    ASSAY_TRY(Decoder::Create(model.get(), {.context = 1 << 16, .kv = KvType::kF32}));
    return {};
  }();
  EXPECT_THAT(refused, assay::testing::FailsWith(
                           ErrorCode::kUnsupported,
                           "The keys of a layer take 8388608 bytes for 65536 positions, and the "
                           "device \"cpu (1 thread)\" binds 6291456 bytes at most, which are "
                           "49152 positions."));
  EXPECT_THAT(refused, assay::testing::FailsWith(ErrorCode::kUnsupported, "fewer positions"));
  EXPECT_TRUE(Decoder::Create(model.get(), {.context = 49152, .kv = KvType::kF32}));
}

TEST_F(MemoryTest, E12_WhatCannotBeAllocatedSaysWhatIsNeededInAll) {
  const gpu::DeviceMemory some = {.total_bytes = 96 * kMib, .free_bytes = 5 * kMib};
  EXPECT_THAT(Try(some, "blk.1.ffn_up"),
              assay::testing::FailsWith(ErrorCode::kAllocation,
                                        "There is no more. The weights of \"test.gguf\" take 0."));
  EXPECT_THAT(
      Try(some, "k_cache.1", {.context = 1 << 16}),
      assay::testing::FailsWith(
          ErrorCode::kAllocation,
          "There is no more. The keys and values of 65536 positions in f16 take 16.0 MiB of "
          "memory, and the device \"cpu (1 thread)\" has 96.0 MiB, of which 5.0 MiB "
          "were free before. This was while making the cache of 65536 positions."));
  EXPECT_THAT(
      Try({}, "gated", {.context = 1 << 16, .kv = KvType::kF32}),
      assay::testing::FailsWith(
          ErrorCode::kAllocation,
          "There is no more. The keys and values of 65536 positions in f32 take 32.0 MiB of "
          "memory. This was while making the work space."));
}

TEST_F(MemoryTest, E12_ACacheLargerThanWhatIsFreeIsRefusedBeforeItIsMade) {
  const gpu::DeviceMemory some = {
      .total_bytes = 96 * kMib, .free_bytes = 5 * kMib, .overcommits = true};
  EXPECT_THAT(
      Try(some, "", {.context = 1 << 15}),
      assay::testing::FailsWith(ErrorCode::kAllocation,
                                "The keys and values of 32768 positions in f16 take 8.0 MiB"));
  EXPECT_THAT(Try(some, "", {.context = 1 << 14}), assay::testing::Succeeds());
}

// A pass that fails in its middle leaves parts of it in flight; the same decoder then feeds on.
TEST(EngineFault, E12_ADecoderGoesOnBehindAPassThatFailedInItsMiddle) {
  const std::string bytes = testing::MakeTinyModel({}).Build();
  const auto file = gguf::File::FromMemory(std::as_bytes(std::span(bytes)), "test.gguf").value();
  for (const SpyCall call : {SpyCall::kBegin, SpyCall::kDispatch, SpyCall::kEndEncoding,
                             SpyCall::kCommit, SpyCall::kWait}) {
    const auto spy = std::make_shared<Spy>();
    const auto device =
        gpu::Device::Create(
            gpu::testing::MakeSpyBackend(gpu::MakeBackend("cpu", {.threads = 2}).value(), spy))
            .value();
    const auto model = Model::Load(device.get(), file).value();
    const auto decoder = Decoder::Create(model.get(), {.commit_every = 1}).value();
    const TokenId id = 1;
    spy->FailNth(call, call == SpyCall::kWait ? 1 : 3);
    EXPECT_FALSE(decoder->Feed({&id, 1}));
    EXPECT_TRUE(spy->failed());
    ASSERT_THAT(decoder->Feed({&id, 1}), assay::testing::Succeeds());
    const TokenId got = decoder->Greedy().value();
    decoder->Reset();
    ASSERT_THAT(decoder->Feed({&id, 1}), assay::testing::Succeeds());
    EXPECT_EQ(decoder->Greedy().value(), got);
    EXPECT_EQ(decoder->counters().encoders_created, decoder->counters().encoders_released);
  }
}

}  // namespace
}  // namespace assay::llm
