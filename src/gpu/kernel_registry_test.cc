#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "base/hash.h"
#include "gpu/backend.h"
#include "gpu/cpu/cpu_kernel.h"
#include "gpu/nearest_name.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;

void Nothing(const CpuKernelArgs&, Extent3) {}

constexpr CpuKernel kNothing = {[]() -> CpuWorkgroupFn { return Nothing; },
                                []() -> std::string_view { return "isa"; }};
constexpr CpuKernel kNoCode = {[]() -> CpuWorkgroupFn { return nullptr; },
                               []() -> std::string_view { return "none"; }};
constexpr std::array kNothingCodes = {KernelCode{kCpuCodeFormat, &kNothing, sizeof(kNothing)}};
constexpr std::array kNoCodeCodes = {KernelCode{kCpuCodeFormat, &kNoCode, sizeof(kNoCode)}};
constexpr std::array kOtherCodes = {KernelCode{"spirv", &kNothing, 4}};
constexpr std::array kShortCodes = {KernelCode{kCpuCodeFormat, &kNothing, 4}};

TEST(NearestName, CountsEdits) {
  const std::vector<std::string_view> names = {"add", "matmul_f32", "matmul_q8_0", "mul"};
  EXPECT_EQ(NearestName("matmul_q8", names), "matmul_q8_0");
  EXPECT_EQ(NearestName("ad", names), "add");
  EXPECT_EQ(NearestName("mull", names), "mul");
  EXPECT_EQ(NearestName("x", {}), "");
}

TEST(KernelRegistry, E12_UnknownKernelSuggestsTheNearestName) {
  const auto device = testing::MakeDevice("null");
  EXPECT_THAT(
      device->kernels().Get("bumb"),
      FailsWith(ErrorCode::kKernelUnknown, "No kernel \"bumb\" is registered; the nearest of"));
  EXPECT_THAT(device->kernels().Get("bumb"), FailsWith(ErrorCode::kKernelUnknown, "\"bump\""));
  const auto empty = Device::Create(MakeBackend("null").value()).value();
  EXPECT_THAT(empty->kernels().Get("bump"), FailsWith(ErrorCode::kKernelUnknown, "none is at all"));
}

TEST(KernelRegistry, NamesAreSortedAndUnique) {
  const auto device = testing::MakeDevice("null");
  const std::vector<std::string> names = device->kernels().Names();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_THAT(device->kernels().Add({"add", {}, 0, 0, "d", kNothingCodes}),
              FailsWith(ErrorCode::kInvalidArgument, "\"add\" is registered already"));
}

TEST(KernelRegistry, E12_EmptyDescriptionsAreErrors) {
  const auto device = testing::MakeDevice("null");
  const auto add = [&](const KernelDesc& desc) { return device->kernels().Add(desc); };
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  EXPECT_THAT(add({"", {}, 0, 0, "d", kNothingCodes}), FailsWith(kInvalid, "name is empty"));
  EXPECT_THAT(add({"k", {}, 0, 0, "d", {}}), FailsWith(kInvalid, "\"k\" has no code"));
  EXPECT_THAT(add({"k", {}, 0, 0, "", kNothingCodes}), FailsWith(kInvalid, "no source digest"));
  EXPECT_THAT(add({"k", {0, 1, 1}, 0, 0, "d", kNothingCodes}),
              FailsWith(kInvalid, "no invocations"));
  EXPECT_THAT(add({"k", {}, 0, 1 << 20, "d", kNothingCodes}),
              FailsWith(kInvalid, "constants (1048576 bytes)"));
}

TEST(KernelRegistry, BuildsAtFirstUseAndOnce) {
  const auto spy = std::make_shared<testing::Spy>();
  const auto device =
      testing::MakeDevice(testing::MakeSpyBackend(MakeBackend("null").value(), spy));
  EXPECT_TRUE(spy->TakeLog().empty());
  const KernelId add = device->kernels().Get("add").value();
  EXPECT_EQ(device->kernels().Get("add").value(), add);
  EXPECT_NE(device->kernels().Get("mul").value(), add);
  EXPECT_EQ(spy->TakeLog(), (std::vector<std::string>{"kernel add", "kernel mul"}));
}

TEST(CpuKernels, E12_CodeThatIsMissingOrBrokenIsATypedError) {
  const auto device = testing::MakeDevice("cpu");
  const auto get = [&](const KernelDesc& desc) {
    EXPECT_THAT(device->kernels().Add(desc), Succeeds());
    return device->kernels().Get(desc.name);
  };
  EXPECT_THAT(get({"other", {}, 0, 0, "d", kOtherCodes}),
              FailsWith(ErrorCode::kUnsupported, "\"other\" has no code in the format \"cpu\""));
  EXPECT_THAT(get({"short", {}, 0, 0, "d", kShortCodes}),
              FailsWith(ErrorCode::kKernelCompile, "(4 bytes) of kernel \"short\""));
  EXPECT_THAT(get({"no code", {}, 0, 0, "d", kNoCodeCodes}),
              FailsWith(ErrorCode::kKernelCompile, "no code for this processor (none)"));
}

TEST(CpuKernels, DigestCoversSourceAndTarget) {
  const auto backend = MakeBackend("cpu").value();
  const auto kernel = backend->CreateKernel({"k", {}, 0, 0, "abc", kNothingCodes}).value();
  EXPECT_EQ(kernel->info().digest, HexDigest(std::string_view("abcisa")));
  EXPECT_EQ(kernel->info().name, "k");
}

TEST(Backends, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(MakeBackend("gpu"), FailsWith(ErrorCode::kNotFound, "cpu, vulkan, null"));
  EXPECT_EQ(BackendNames(), (std::vector<std::string>{"cpu", "vulkan", "null"}));
  EXPECT_THAT(MakeBackend("cpu", {.threads = -1}), FailsWith(ErrorCode::kInvalidArgument, "(-1)"));
  EXPECT_THAT(MakeBackend("cpu", {.threads = 1025}),
              FailsWith(ErrorCode::kInvalidArgument, "(1025)"));
  EXPECT_THAT(Device::Create(nullptr), FailsWith(ErrorCode::kInvalidArgument, "backend"));
}

}  // namespace
}  // namespace assay::gpu
