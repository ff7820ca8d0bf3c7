// E6 on the vulkan backend: a dispatch that touches what it does not declare is named with its
// bytes, and harms nothing.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/vulkan/spirv_kernel.h"
#include "test_shaders/kStrayShader.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Elementwise;
using testing::MakeBuffer;
using testing::TestDispatch;
using testing::View;

constexpr KernelCode kStrayCode{kSpirvCodeFormat, &testing::kStrayShader, sizeof(SpirvKernel)};

class VulkanCheckedTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    device_ = testing::MakeDevice(GetParam(), {}, {.checked = true});
    session_ = device_->CreateSession({.barriers = BarrierMode::kManual}).value();
    ASSERT_THAT(device_->kernels().Add({.name = "stray",
                                        .workgroup = {testing::kWorkgroupElements, 1, 1},
                                        .binding_count = 2,
                                        .constant_bytes = 8,
                                        .source_digest = "7e57",
                                        .code = std::span(&kStrayCode, 1)}),
                Succeeds());
    from_ = Filled("from");
    to_ = Filled("to");
  }

  // Any two differ in each of their bytes.
  static std::vector<uint32_t> Words() {
    std::vector<uint32_t> words(kWords);
    for (uint32_t i = 0; i < kWords; ++i) words[i] = (i + 1) * 0x01010101U;
    return words;
  }

  Buffer Filled(std::string label) {
    Buffer buffer = MakeBuffer(*device_, kWords * 4, std::move(label));
    const std::vector<uint32_t> words = Words();
    EXPECT_THAT(device_->Write(buffer.All(), std::as_bytes(std::span(words))), Succeeds());
    return buffer;
  }

  Status Run(const TestDispatch& dispatch) {
    ASSAY_TRY(session_->Dispatch(dispatch.get()));
    ASSAY_TRY(session_->Commit());
    return session_->Wait();
  }

  // Words [16, 32) of both buffers are what it declares.
  Status Stray(int32_t read_at, int32_t write_at, Access to = Access::kWrite) {
    const std::array<int32_t, 2> at = {read_at, write_at};
    std::vector<std::byte> constants(sizeof(at));
    std::memcpy(constants.data(), at.data(), sizeof(at));
    return Run(
        TestDispatch(testing::Kernel(*device_, "stray"),
                     {{View(from_, 64, 64), Access::kRead, false}, {View(to_, 64, 64), to, false}},
                     1, constants));
  }

  static constexpr size_t kWords = 64;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  Buffer from_;
  Buffer to_;
};
INSTANTIATE_TEST_SUITE_P(Variants, VulkanCheckedTest,
                         ::testing::ValuesIn(testing::VariantsOf("vulkan")),
                         testing::BackendTestName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VulkanCheckedTest);

TEST_P(VulkanCheckedTest, E6_TrueDeclarationsGiveTheirResults) {
  EXPECT_THAT(Stray(3, 5), Succeeds());
  std::vector<uint32_t> wanted = Words();
  wanted[16 + 5] = wanted[16 + 3];
  EXPECT_EQ(testing::ReadWords(*device_, to_.All()), wanted);
  EXPECT_THAT(Run(testing::Bump(*device_, View(to_, 8, 12))), Succeeds());
  for (size_t i = 2; i < 5; ++i) ++wanted[i];
  EXPECT_EQ(testing::ReadWords(*device_, to_.All()), wanted);
}

TEST_P(VulkanCheckedTest, E6_AWriteOutsideIsNamedAndHarmsNothing) {
  const std::vector<uint32_t> before = testing::ReadWords(*device_, to_.All());
  EXPECT_THAT(
      Stray(0, -1),
      FailsWith(ErrorCode::kInvalidArgument,
                "Dispatch 1 of command buffer 1, kernel \"stray\", writes bytes [60, 64) of "
                "buffer \"to\", outside its nearest binding 1 [64, 128)"));
  EXPECT_THAT(Stray(0, 16), FailsWith(ErrorCode::kInvalidArgument,
                                      "writes bytes [128, 132) of buffer \"to\", outside"));
  EXPECT_EQ(testing::ReadWords(*device_, to_.All()), before);
}

TEST_P(VulkanCheckedTest, E6_AWriteToWhatIsDeclaredReadIsNamed) {
  EXPECT_THAT(Stray(0, 2, Access::kRead),
              FailsWith(ErrorCode::kInvalidArgument,
                        "writes bytes [72, 76) of buffer \"to\", which binding 1 declares as r"));
}

TEST_P(VulkanCheckedTest, E6_AReadOutsideIsNamed) {
  EXPECT_THAT(Stray(-2, 0),
              FailsWith(ErrorCode::kInvalidArgument,
                        "reads bytes [56, 60) of buffer \"from\", outside its nearest "
                        "binding 0 [64, 128)"));
  EXPECT_THAT(Stray(17, 0), FailsWith(ErrorCode::kInvalidArgument,
                                      "reads bytes [132, 136) of buffer \"from\", outside"));
}

TEST_P(VulkanCheckedTest, E6_AReadOfWhatIsDeclaredWrittenIsNamed) {
  const TestDispatch bump(testing::Kernel(*device_, "bump"), {{View(to_, 64, 16), Access::kWrite}},
                          1);
  const Status run = Run(bump);
  EXPECT_THAT(run, FailsWith(ErrorCode::kInvalidArgument, "reads bytes [64, "));
  EXPECT_THAT(run, FailsWith(ErrorCode::kInvalidArgument,
                             "of buffer \"to\", which binding 0 declares as w"));
  // What follows goes on.
  EXPECT_THAT(Stray(0, 0), Succeeds());
}

TEST_P(VulkanCheckedTest, E6_InputsAndResultsMayBeTheSameBytes) {
  const Buffer floats = MakeBuffer(*device_, 64);
  testing::WriteFloats(*device_, floats.All(), std::vector<float>(16, 1.5F));
  EXPECT_THAT(Run(Elementwise(*device_, "add", floats.All(), floats.All(), floats.All())),
              Succeeds());
  EXPECT_EQ(testing::ReadFloats(*device_, floats.All()), std::vector<float>(16, 3.0F));
}

}  // namespace
}  // namespace assay::gpu
