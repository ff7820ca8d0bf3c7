// BackendOptions::cancelled: work that has not begun is left out, Wait says so, and the session,
// the device and the buffers go on.
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_devices.h"

#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Bump;
using testing::MakeBuffer;
using testing::ReadWords;

constexpr uint32_t kDispatches = 64;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// Says true from the question number `after` on.
struct Asked {
  std::atomic<uint64_t> questions{0};
  std::atomic<uint64_t> after{kNever};
  std::function<bool()> Answer() {
    return [this] { return questions.fetch_add(1) + 1 >= after.load(); };
  }
};

// Whether the device takes command buffers in parts, so that some of one can be left out.
bool TakesParts(const Device& device) {
  if (device.info().backend != "vulkan") return true;
  const std::string type = ListDevices("vulkan").value().at(0).type;
  return type == "cpu" || type == "integrated";
}

// A backend, whether the device is checked.
class CancelTest : public ::testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  CancelTest() {
    device_ =
        testing::MakeDevice(std::get<0>(GetParam()), {.threads = 2, .cancelled = asked_.Answer()},
                            {.checked = std::get<1>(GetParam())});
    x_ = std::make_unique<Buffer>(MakeBuffer(*device_, 1 << 18));
    session_ = device_->CreateSession({.barriers = BarrierMode::kAutomatic}).value();
  }

  // Each adds 1 to every word, with a barrier between any two.
  void Encode() {
    for (uint32_t i = 0; i < kDispatches; ++i) {
      ASSERT_THAT(session_->Dispatch(Bump(*device_, x_->All()).get()), Succeeds());
    }
    ASSERT_THAT(session_->Commit(), Succeeds());
  }
  uint32_t Bumps() { return ReadWords(*device_, x_->All()).front(); }

  Asked asked_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Buffer> x_;
  std::unique_ptr<Session> session_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CancelTest);
INSTANTIATE_TEST_SUITE_P(Backends, CancelTest,
                         ::testing::Combine(::testing::ValuesIn(testing::ExecutingBackends()),
                                            ::testing::Bool()),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) +
                                  (std::get<1>(tested.param) ? "_checked" : "");
                         });

TEST_P(CancelTest, E12_WhatHasNotBegunIsLeftOutAndTheSessionGoesOn) {
  // One command buffer behind another. A device that takes all at once is asked about in Wait
  // alone, behind the making of the kernel.
  asked_.after = TakesParts(*device_) ? 6 : 2;
  Encode();
  Encode();
  EXPECT_THAT(session_->Wait(), FailsWith(ErrorCode::kCancelled, "stopped before its end"));
  asked_.after = kNever;
  const uint32_t bumps = Bumps();
  if (TakesParts(*device_)) {
    EXPECT_LT(bumps, kDispatches);
  }

  EXPECT_THAT(session_->Wait(), Succeeds());
  EXPECT_EQ(Bumps(), bumps);
  Encode();
  EXPECT_THAT(session_->Wait(), Succeeds());
  EXPECT_EQ(Bumps(), bumps + kDispatches);
}

// Some drivers compile a kernel when it first runs, which takes them seconds.
TEST_P(CancelTest, E12_AKernelsFirstUseIsThePartsLast) {
  const bool in_parts = std::get<0>(GetParam()) == "vulkan" && TakesParts(*device_);
  if (!in_parts || std::get<1>(GetParam())) return;
  const BufferView few = x_->All().Slice(0, 256).value();
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(session_->Dispatch(Bump(*device_, few).get()), Succeeds());
  }
  // The first part runs from here on.
  ASSERT_THAT(session_->Commit(), Succeeds());
  asked_.after = 0;
  EXPECT_THAT(session_->Wait(), FailsWith(ErrorCode::kCancelled, "stopped before its end"));
  asked_.after = kNever;
  EXPECT_EQ(Bumps(), 1U);
}

TEST_P(CancelTest, E12_NothingIsLeftOutOfARunThatNobodyStops) {
  Encode();
  Encode();
  EXPECT_THAT(session_->Wait(), Succeeds());
  EXPECT_EQ(Bumps(), 2 * kDispatches);
  const Counters& counters = session_->counters();
  EXPECT_EQ(counters.commits, 2U);
  EXPECT_EQ(counters.waits, 1U);
  EXPECT_EQ(counters.dispatches, 2 * kDispatches);
}

TEST_P(CancelTest, E11_TheEndOfASessionRunsWhatWasCommitted) {
  Encode();
  session_.reset();
  EXPECT_EQ(Bumps(), kDispatches);
}

TEST_P(CancelTest, E12_TheEndOfASessionThatWasStoppedDoesNotRunTheRest) {
  Encode();
  ASSERT_THAT(session_->Wait(), Succeeds());
  asked_.after = 0;
  Encode();
  session_.reset();
  if (TakesParts(*device_)) {
    EXPECT_LT(Bumps(), 2 * kDispatches);
  }
}

}  // namespace
}  // namespace assay::gpu
