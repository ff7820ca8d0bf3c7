// E6: false declarations of access are found, named and harmless.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/cpu/cpu_kernel.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;

// Copies `words` uint32 from in[from] to out[to], counted from the bindings' first bytes: in may be
// left on either side.
struct CopyArgs {
  int32_t from = 0;
  int32_t to = 0;
  uint32_t words = 1;
};

void CopyGroup(const CpuKernelArgs& args, Extent3) {
  CopyArgs copy;
  std::memcpy(&copy, args.constants, sizeof(copy));
  const auto* in = reinterpret_cast<const uint32_t*>(args.bindings[0]);
  auto* out = reinterpret_cast<uint32_t*>(args.bindings[1]);
  for (uint32_t i = 0; i < copy.words; ++i) {
    out[copy.to + static_cast<int32_t>(i)] = in[copy.from + static_cast<int32_t>(i)];
  }
}

// out[0] = the sum of shared memory, which it does not write.
void SharedGroup(const CpuKernelArgs& args, Extent3) {
  const auto* shared = reinterpret_cast<const uint32_t*>(args.shared.data());
  auto* out = reinterpret_cast<uint32_t*>(args.bindings[0]);
  out[0] = shared[0] + shared[1];
}

template <CpuWorkgroupFn kRun>
constexpr CpuKernel kCode = {[]() -> CpuWorkgroupFn { return kRun; },
                             []() -> std::string_view { return "test"; }};
template <CpuWorkgroupFn kRun>
constexpr std::array kCodes = {KernelCode{kCpuCodeFormat, &kCode<kRun>, sizeof(CpuKernel)}};

class AccessCheckTest : public ::testing::Test {
 protected:
  AccessCheckTest() {
    device_ = testing::MakeDevice("cpu", {.threads = 2}, {.checked = true});
    EXPECT_THAT(device_->kernels().Add({"copy", {}, 2, sizeof(CopyArgs), "d", kCodes<CopyGroup>}),
                Succeeds());
    EXPECT_THAT(device_->kernels().Add({"shared", {}, 1, 0, "d", kCodes<SharedGroup>}), Succeeds());
    session_ = device_->CreateSession().value();
    in_ = testing::MakeBuffer(*device_, 256, "in");
    out_ = testing::MakeBuffer(*device_, 256, "out");
    std::vector<uint32_t> words(64);
    std::iota(words.begin(), words.end(), 100u);
    EXPECT_THAT(device_->Write(in_.All(), std::as_bytes(std::span(words))), Succeeds());
    std::ranges::fill(words, 7u);
    EXPECT_THAT(device_->Write(out_.All(), std::as_bytes(std::span(words))), Succeeds());
  }

  // Runs "copy" and gives what Wait says.
  Status Copy(const Binding& in, const Binding& out, const CopyArgs& copy) {
    const std::array bindings = {in, out};
    Dispatch dispatch;
    dispatch.kernel = testing::Kernel(*device_, "copy");
    dispatch.bindings = bindings;
    dispatch.constants = std::as_bytes(std::span(&copy, 1));
    ASSAY_TRY(session_->Dispatch(dispatch));
    ASSAY_TRY(session_->Commit());
    return session_->Wait();
  }
  Binding In(uint64_t offset, uint64_t length, Access access = Access::kRead) {
    return {testing::View(in_, offset, length), access};
  }
  Binding Out(uint64_t offset, uint64_t length, Access access = Access::kWrite) {
    return {testing::View(out_, offset, length), access};
  }
  std::vector<uint32_t> OutWords() { return testing::ReadWords(*device_, out_.All()); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  Buffer in_;
  Buffer out_;
};

TEST_F(AccessCheckTest, E6_AnHonestDispatchGivesItsResult) {
  ASSERT_THAT(Copy(In(16, 16), Out(64, 32), {.from = 0, .to = 1, .words = 3}), Succeeds());
  std::vector<uint32_t> expected(64, 7);
  // Bytes of a write-only binding that the kernel leaves alone keep their contents.
  expected[17] = 104;
  expected[18] = 105;
  expected[19] = 106;
  EXPECT_EQ(OutWords(), expected);
}

TEST_F(AccessCheckTest, E6_AWriteOutsideTheBindingsIsNamed) {
  EXPECT_THAT(
      Copy(In(0, 64), Out(64, 32), {.from = 0, .to = 7, .words = 3}),
      FailsWith(ErrorCode::kInvalidArgument,
                "Dispatch 1 of command buffer 1, kernel \"copy\", writes bytes [96, 104) of "
                "buffer \"out\", outside its nearest binding 1 [64, 96)."));
  EXPECT_THAT(Copy(In(0, 64), Out(64, 32), {.from = 0, .to = -2, .words = 1}),
              FailsWith(ErrorCode::kInvalidArgument, "writes bytes [56, 60) of buffer \"out\""));
  // Before the buffer's first byte.
  EXPECT_THAT(Copy(In(0, 64), Out(0, 32), {.from = 0, .to = -2, .words = 1}),
              FailsWith(ErrorCode::kInvalidArgument, "writes bytes [-8, -4) of buffer \"out\""));
  EXPECT_EQ(OutWords(), std::vector<uint32_t>(64, 7)) << "a false declaration must do no harm";
}

TEST_F(AccessCheckTest, E6_AWriteToAReadOnlyBindingIsNamed) {
  // From the words 7, 7 to 100, 101 only the lowest bytes change.
  EXPECT_THAT(Copy(In(0, 64), Out(0, 32, Access::kRead), {.words = 2}),
              FailsWith(ErrorCode::kInvalidArgument,
                        "writes bytes [0, 5) of buffer \"out\", which binding 1 declares as "
                        "r."));
}

TEST_F(AccessCheckTest, E6_AWriteOfTheSameValueIsFound) {
  // The filler outside is 0 at first and something else the second time.
  const std::vector<uint32_t> zeros(64, 0);
  ASSERT_THAT(device_->Write(in_.All(), std::as_bytes(std::span(zeros))), Succeeds());
  EXPECT_THAT(Copy(In(0, 64), Out(64, 32), {.to = 8, .words = 1}),
              FailsWith(ErrorCode::kInvalidArgument, "writes bytes [96, 100)"));
}

TEST_F(AccessCheckTest, E6_AReadOutsideTheBindingsIsNamed) {
  EXPECT_THAT(Copy(In(64, 32), Out(0, 64), {.from = 6, .to = 0, .words = 4}),
              FailsWith(ErrorCode::kInvalidArgument,
                        "reads bytes [96, 104) of buffer \"in\", outside its nearest "
                        "binding 0 [64, 96)."));
  EXPECT_THAT(Copy(In(64, 32), Out(0, 64), {.from = -1, .to = 0, .words = 1}),
              FailsWith(ErrorCode::kInvalidArgument, "reads bytes [60, 64) of buffer \"in\""));
  EXPECT_EQ(OutWords(), std::vector<uint32_t>(64, 7));
}

TEST_F(AccessCheckTest, E6_AReadOfAWriteOnlyBindingIsNamed) {
  EXPECT_THAT(Copy(In(0, 64, Access::kWrite), Out(0, 32), {.from = 2, .words = 2}),
              FailsWith(ErrorCode::kInvalidArgument,
                        "reads bytes [8, 16) of buffer \"in\", which binding 0 declares as "
                        "w."));
}

TEST_F(AccessCheckTest, E6_SharedMemoryMustBeWrittenBeforeItIsRead) {
  testing::TestDispatch dispatch(testing::Kernel(*device_, "shared"), {Out(0, 4)}, 1, {}, 64);
  ASSERT_THAT(session_->Dispatch(dispatch.get()), Succeeds());
  ASSERT_THAT(session_->Commit(), Succeeds());
  EXPECT_THAT(
      session_->Wait(),
      FailsWith(ErrorCode::kInvalidArgument,
                "kernel \"shared\", reads shared memory that its workgroup has not written"));
}

TEST_F(AccessCheckTest, OverlappingBindingsOfOneBufferSeeEachOther) {
  // Reads [0, 64) and writes [32, 64) of the same buffer.
  ASSERT_THAT(Copy(In(0, 64), {testing::View(in_, 32, 32), Access::kWrite}, {.words = 4}),
              Succeeds());
  EXPECT_EQ(testing::ReadWords(*device_, in_.All())[9], 101u);
}

TEST_F(AccessCheckTest, BindingsThatLieFarApartAreTwoImages) {
  const Buffer large = testing::MakeBuffer(*device_, 1 << 20, "large");
  const std::vector<uint32_t> words = {1, 2};
  ASSERT_THAT(device_->Write(testing::View(large, 0, 8), std::as_bytes(std::span(words))),
              Succeeds());
  ASSERT_THAT(Copy({testing::View(large, 0, 8), Access::kRead},
                   {testing::View(large, (1 << 20) - 8, 8), Access::kWrite}, {.words = 2}),
              Succeeds());
  EXPECT_EQ(testing::ReadWords(*device_, testing::View(large, (1 << 20) - 8, 8)), words);
}

TEST_F(AccessCheckTest, E6_TheGuardFollowsWhereASmallerImageEnds) {
  const Buffer large = testing::MakeBuffer(*device_, 1 << 20, "large");
  ASSERT_THAT(Copy(In(0, 64), {large.All(), Access::kWrite}, {.words = 1}), Succeeds());
  EXPECT_THAT(
      Copy(In(0, 64), {testing::View(large, 0, 64), Access::kWrite}, {.to = 1 << 16, .words = 1}),
      FailsWith(ErrorCode::kInvalidArgument, "writes bytes [262144, 262145) of buffer \"large\""));
}

TEST_F(AccessCheckTest, E6_ErrorsNameTheDispatchInTheOrderOfEncoding) {
  const CopyArgs honest{.words = 1};
  const CopyArgs lying{.to = 16, .words = 1};
  const std::array bindings = {In(0, 64), Out(0, 32)};
  ASSERT_THAT(Copy(In(0, 64), Out(0, 32), honest), Succeeds());
  for (const CopyArgs& copy : {honest, honest, lying, honest}) {
    Dispatch dispatch;
    dispatch.kernel = testing::Kernel(*device_, "copy");
    dispatch.bindings = bindings;
    dispatch.constants = std::as_bytes(std::span(&copy, 1));
    ASSERT_THAT(session_->Dispatch(dispatch), Succeeds());
  }
  ASSERT_THAT(session_->Commit(), Succeeds());
  EXPECT_THAT(session_->Wait(), FailsWith(ErrorCode::kInvalidArgument,
                                          "Dispatch 3 of command buffer 2, kernel \"copy\""));
}

TEST_F(AccessCheckTest, AfterAFalseDeclarationTheDeviceGoesOn) {
  EXPECT_THAT(Copy(In(0, 64), Out(64, 32), {.to = 8, .words = 1}),
              FailsWith(ErrorCode::kInvalidArgument, "writes"));
  // It has finished: the host may look, and the next command buffer runs.
  EXPECT_EQ(OutWords(), std::vector<uint32_t>(64, 7));
  EXPECT_THAT(Copy(In(0, 64), Out(64, 32), {.words = 1}), Succeeds());
  EXPECT_EQ(OutWords()[16], 100u);
  EXPECT_EQ(session_->counters().waits, 2u);
}

}  // namespace
}  // namespace assay::gpu
