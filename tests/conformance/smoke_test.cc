// E7: the smoke test of every backend that executes.
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using testing::Elementwise;

class SmokeTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, SmokeTest, ::testing::ValuesIn(testing::ExecutingBackends()),
                         testing::BackendTestName);

TEST_P(SmokeTest, E7_SixteenSessionsAgreeWithTheFormula) {
  constexpr size_t kCount = 4096;
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = 1.0f + static_cast<float>(i % 97) * 0.5f;
    b[i] = 2.0f + static_cast<float>(i % 53) * 0.25f;
    c[i] = 0.5f + static_cast<float>(i % 31) * 0.125f;
  }
  const std::unique_ptr<Device> device = testing::MakeDevice(GetParam());
  const auto filled = [&](const char* label, const std::vector<float>& values) {
    Buffer buffer = testing::MakeBuffer(*device, kCount * sizeof(float), label);
    testing::WriteFloats(*device, buffer.All(), values);
    return buffer;
  };
  const Buffer buffer_a = filled("a", a);
  const Buffer buffer_b = filled("b", b);
  const Buffer buffer_c = filled("c", c);

  struct Run {
    Buffer tmp, out;
    std::unique_ptr<Session> session;
  };
  std::vector<Run> runs(16);
  for (Run& run : runs) {
    run.tmp = testing::MakeBuffer(*device, kCount * sizeof(float), "tmp");
    run.out = testing::MakeBuffer(*device, kCount * sizeof(float), "out");
    run.session = device->CreateSession({.barriers = BarrierMode::kManual}).value();
    Session& session = *run.session;
    ASSERT_TRUE(session.Dispatch(
        Elementwise(*device, "add", buffer_a.All(), buffer_b.All(), run.tmp.All()).get()));
    ASSERT_TRUE(session.Barrier());
    ASSERT_TRUE(session.Dispatch(
        Elementwise(*device, "mul", run.tmp.All(), buffer_c.All(), run.out.All()).get()));
    ASSERT_TRUE(session.Commit());
  }
  for (Run& run : runs) {
    ASSERT_TRUE(run.session->Wait());
    const std::vector<float> out = testing::ReadFloats(*device, run.out.All());
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_NEAR(out[i], (double{a[i]} + b[i]) * c[i], 1e-4) << "element " << i;
    }
    EXPECT_EQ(run.session->counters(), (Counters{.command_buffers = 1,
                                                 .encoders_created = 1,
                                                 .encoders_released = 1,
                                                 .dispatches = 2,
                                                 .barriers = 1,
                                                 .commits = 1,
                                                 .waits = 1}));
  }
}

}  // namespace
}  // namespace assay::gpu
