// Every call into Vulkan fails in turn: the error arrives with its code and the name of what
// failed, and nothing is left.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/vulkan/hooks.h"
#include "gpu/vulkan/vulkan_backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Bump;
using testing::MakeBuffer;

constexpr int32_t kOutOfDeviceMemory = -2;
constexpr int32_t kDeviceLost = -4;

// Counts the calls that can fail and makes one of them fail.
struct Injector {
  std::atomic<uint64_t> calls{0};
  uint64_t failing = 0;  // From 1; 0: none.
  int32_t result = 0;
  std::string failed;  // The function that was made to fail.

  vulkan::Hooks Hooks(const std::shared_ptr<vulkan::LiveObjects>& live) {
    return {.live = live, .inject = [this](std::string_view function) -> int32_t {
              if (calls.fetch_add(1) + 1 != failing) return 0;
              failed = function;
              return result;
            }};
  }
};

// Two command buffers over a buffer that the host writes and reads.
Status RunProgram(Device& device) {
  ASSAY_ASSIGN_OR_RETURN(const Buffer x,
                         device.CreateBuffer({.size_bytes = 256, .label = "x", .digest = {}}));
  std::vector<uint32_t> words(64);
  std::iota(words.begin(), words.end(), 7U);
  ASSAY_TRY(device.Write(x.All(), std::as_bytes(std::span(words))));
  ASSAY_ASSIGN_OR_RETURN(const KernelId bump, device.kernels().Get("bump"));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, device.CreateSession());
  const std::array<Binding, 1> bindings = {Binding{x.All(), Access::kReadWrite}};
  const Dispatch dispatch = {.kernel = bump, .bindings = bindings, .constants = {}, .grid = {}};
  for (int i = 0; i < 2; ++i) {
    ASSAY_TRY(session->Dispatch(dispatch));
    ASSAY_TRY(session->Dispatch(dispatch));
    ASSAY_TRY(session->Commit());
  }
  ASSAY_TRY(session->Wait());
  std::vector<uint32_t> read(64);
  ASSAY_TRY(device.Read(x.All(), std::as_writable_bytes(std::span(read))));
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], words[i] + 4) << "word " << i;
  return {};
}

Status RunOn(const std::string& variant, const vulkan::Hooks& hooks) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                         MakeVulkanBackend(testing::OptionsOf(variant), hooks));
  return RunProgram(*testing::MakeDevice(std::move(backend)));
}

class VulkanFaultTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Variants, VulkanFaultTest,
                         ::testing::ValuesIn(testing::VariantsOf("vulkan")),
                         testing::BackendTestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanFaultTest);

TEST_P(VulkanFaultTest, E12_EveryCallMayFailAndNothingIsLeft) {
  const struct {
    int32_t result;
    ErrorCode code;
    std::string_view word;
  } kinds[] = {{kOutOfDeviceMemory, ErrorCode::kAllocation, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
               {kDeviceLost, ErrorCode::kDevice, "VK_ERROR_DEVICE_LOST"}};
  for (const auto& kind : kinds) {
    uint64_t failures = 0;
    for (uint64_t n = 1;; ++n) {
      SCOPED_TRACE("call " + std::to_string(n));
      const auto live = std::make_shared<vulkan::LiveObjects>();
      Injector injector;
      injector.failing = n;
      injector.result = kind.result;
      const Status status = RunOn(GetParam(), injector.Hooks(live));
      EXPECT_EQ(live->alive, 0) << "after " << injector.failed;
      if (injector.failed.empty()) {
        EXPECT_THAT(status, Succeeds());
        EXPECT_GT(live->created, 0);
        break;
      }
      ++failures;
      // A block that is refused is asked for once more, smaller.
      const bool asked_again =
          injector.failed == "vkAllocateMemory" || injector.failed == "vkMapMemory";
      if (status && asked_again && kind.code == ErrorCode::kAllocation) continue;
      // What is waited for at the end of an object has nobody to tell.
      if (status && injector.failed.starts_with("vkWait")) continue;
      EXPECT_THAT(status,
                  FailsWith(kind.code, injector.failed + " gave " + std::string(kind.word)));
    }
    EXPECT_GT(failures, 10U);
  }
}

TEST_P(VulkanFaultTest, E12_ALostDeviceStaysLost) {
  const auto live = std::make_shared<vulkan::LiveObjects>();
  Injector injector;
  {
    const auto device = testing::MakeDevice(
        MakeVulkanBackend(testing::OptionsOf(GetParam()), injector.Hooks(live)).value());
    const Buffer x = MakeBuffer(*device, 256);
    const auto session = device->CreateSession().value();
    ASSERT_THAT(session->Dispatch(Bump(*device, x.All()).get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
    injector.failing = injector.calls + 1;
    injector.result = kDeviceLost;
    EXPECT_THAT(session->Wait(), FailsWith(ErrorCode::kDevice, "VK_ERROR_DEVICE_LOST"));
    const auto other = device->CreateSession().value();
    ASSERT_THAT(other->Dispatch(Bump(*device, x.All()).get()), Succeeds());
    EXPECT_THAT(other->Commit(), FailsWith(ErrorCode::kDevice, "has been lost"));
  }
  EXPECT_EQ(live->alive, 0);
}

TEST_P(VulkanFaultTest, SmallHostBuffersNeedNoCopiesWhereTheyAreMapped) {
  uint64_t submissions = 0;
  const vulkan::Hooks hooks{.inject = [&](std::string_view function) {
    submissions += function == "vkQueueSubmit" ? 1 : 0;
    return 0;
  }};
  const auto device =
      testing::MakeDevice(MakeVulkanBackend(testing::OptionsOf(GetParam()), hooks).value());
  const Buffer x =
      device
          ->CreateBuffer({.size_bytes = 64, .kind = BufferKind::kHost, .label = "x", .digest = {}})
          .value();
  const std::vector<uint32_t> words(16, 41);
  const auto session = device->CreateSession().value();
  submissions = 0;
  ASSERT_THAT(device->Write(x.All(), std::as_bytes(std::span(words))), Succeeds());
  ASSERT_THAT(session->Dispatch(Bump(*device, x.All()).get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadWords(*device, x.All()), std::vector<uint32_t>(16, 42));
  const std::vector<std::string>& features = device->info().features;
  const bool mapped = std::ranges::count(features, "unified-memory") != 0 ||
                      std::ranges::count(features, "mapped-host-buffers") != 0;
  EXPECT_EQ(submissions, mapped ? 1U : 3U);
}

TEST_P(VulkanFaultTest, ManyThreadsWriteAtOnce) {
  constexpr size_t kThreads = 6;
  constexpr size_t kWords = (9 << 20) / 4 + 1;  // More than a staging piece.
  const auto live = std::make_shared<vulkan::LiveObjects>();
  {
    const auto device = testing::MakeDevice(
        MakeVulkanBackend(testing::OptionsOf(GetParam()), {.live = live, .inject = {}}).value());
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < kThreads; ++i) buffers.push_back(MakeBuffer(*device, kWords * 4));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        std::vector<uint32_t> words(kWords);
        std::iota(words.begin(), words.end(), static_cast<uint32_t>(i * 1000));
        ASSERT_THAT(device->Write(buffers[i].All(), std::as_bytes(std::span(words))), Succeeds());
        // Its memory is used again only when the copy into it has passed.
        const Buffer brief = MakeBuffer(*device, 100'000);
        ASSERT_THAT(
            device->Write(testing::View(brief, 0, 4), std::as_bytes(std::span(words)).first(4)),
            Succeeds());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kThreads; ++i) {
      const std::vector<uint32_t> words = testing::ReadWords(*device, buffers[i].All());
      for (size_t k = 0; k < kWords; k += 97) ASSERT_EQ(words[k], i * 1000 + k);
    }
  }
  EXPECT_EQ(live->alive, 0);
}

}  // namespace
}  // namespace assay::gpu
