// The second opinion: Vulkan's validation layer, with its checks of synchronisation, has nothing to
// say about correct programs and speaks of a lost barrier.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::Succeeds;
using testing::Elementwise;
using testing::MakeBuffer;

class Messages {
 public:
  void Add(std::string_view message) {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(message);
  }
  std::vector<std::string> All() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

class VulkanValidationTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs `tmp = a + b`, a barrier unless `racy`, `out = tmp * c`, and returns what the layer said
  // until the device had gone. A backend that `may_be_stopped` gets command buffers in parts where
  // they are long.
  std::vector<std::string> RunSmoke(bool racy, bool may_be_stopped = false) {
    Messages messages;
    {
      BackendOptions options = testing::OptionsOf(GetParam());
      options.vulkan.validation = [&](std::string_view message) { messages.Add(message); };
      if (may_be_stopped) options.cancelled = [] { return false; };
      const auto device = testing::MakeDevice(MakeBackend("vulkan", options).value());
      // More workgroups than a part has.
      constexpr size_t kCount = 1 << 17;
      const std::vector<float> ones(kCount, 1.0F);
      std::vector<Buffer> inputs;
      for (int i = 0; i < 3; ++i) {
        inputs.push_back(MakeBuffer(*device, kCount * 4));
        testing::WriteFloats(*device, inputs.back().All(), ones);
      }
      for (int i = 0; i < 3; ++i) {
        const Buffer tmp = MakeBuffer(*device, kCount * 4);
        const Buffer out = MakeBuffer(*device, kCount * 4);
        const auto session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
        EXPECT_THAT(
            session->Dispatch(
                Elementwise(*device, "add", inputs[0].All(), inputs[1].All(), tmp.All()).get()),
            Succeeds());
        if (!racy) {
          EXPECT_THAT(session->Barrier(), Succeeds());
        }
        EXPECT_THAT(session->Dispatch(
                        Elementwise(*device, "mul", tmp.All(), inputs[2].All(), out.All()).get()),
                    Succeeds());
        EXPECT_THAT(session->Commit(), Succeeds());
        EXPECT_THAT(session->Wait(), Succeeds());
        if (!racy) {
          EXPECT_EQ(testing::ReadFloats(*device, out.All()), std::vector<float>(kCount, 2.0F));
        }
      }
    }
    return messages.All();
  }
};
INSTANTIATE_TEST_SUITE_P(Variants, VulkanValidationTest,
                         ::testing::ValuesIn(testing::VariantsOf("vulkan")),
                         testing::BackendTestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanValidationTest);

TEST_P(VulkanValidationTest, E7_TheCleanSmokeGivesNoMessage) {
  EXPECT_THAT(RunSmoke(/*racy=*/false), ::testing::IsEmpty());
}

TEST_P(VulkanValidationTest, E12_CommandBuffersInPartsGiveNoMessage) {
  EXPECT_THAT(RunSmoke(/*racy=*/false, /*may_be_stopped=*/true), ::testing::IsEmpty());
}

TEST_P(VulkanValidationTest, E7_TheRacySmokeIsReported) {
  EXPECT_THAT(RunSmoke(/*racy=*/true),
              ::testing::Contains(::testing::HasSubstr("READ_AFTER_WRITE")));
}

}  // namespace
}  // namespace assay::gpu
