// E7 on the trace: the hazard checker passes the smoke program with its barrier and fails it
// without, every time.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/hazard.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::Succeeds;
using testing::Elementwise;
using testing::MakeBuffer;

// All backends, since nothing here looks at results. One thread: the program without its barrier
// races, and on two the thread sanitizer would see it now and then.
class RecordedSmokeTest : public ::testing::TestWithParam<std::string> {
 protected:
  hazard::Report RecordAndCheck(BarrierMode mode, bool with_barrier) {
    std::string text;
    const auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
    {
      const auto device = testing::MakeDevice(record::MakeRecordingBackend(
          testing::MakeVariant(GetParam(), {.threads = 1}).value(), writer.get()));
      const auto session = device->CreateSession({.barriers = mode}).value();
      const Buffer a = MakeBuffer(*device, 16384, "a");
      const Buffer b = MakeBuffer(*device, 16384, "b");
      const Buffer c = MakeBuffer(*device, 16384, "c");
      const Buffer tmp = MakeBuffer(*device, 16384, "tmp");
      const Buffer out = MakeBuffer(*device, 16384, "out");
      EXPECT_THAT(session->Dispatch(Elementwise(*device, "add", a.All(), b.All(), tmp.All()).get()),
                  Succeeds());
      if (with_barrier) {
        EXPECT_THAT(session->Barrier(), Succeeds());
      }
      EXPECT_THAT(
          session->Dispatch(Elementwise(*device, "mul", tmp.All(), c.All(), out.All()).get()),
          Succeeds());
      EXPECT_THAT(session->Commit(), Succeeds());
      EXPECT_THAT(session->Wait(), Succeeds());
    }
    EXPECT_THAT(writer->Close(), Succeeds());
    return hazard::CheckTraceText(text, "smoke", {}).value();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, RecordedSmokeTest,
                         ::testing::ValuesIn(testing::RunnableBackends()),
                         testing::BackendTestName);

TEST_P(RecordedSmokeTest, E7_TheHazardCheckerFindsTheMissingBarrier) {
  EXPECT_TRUE(RecordAndCheck(BarrierMode::kManual, true).findings.empty());
  const hazard::Report racy = RecordAndCheck(BarrierMode::kManual, false);
  ASSERT_EQ(racy.findings.size(), 1u);
  EXPECT_EQ(racy.findings[0].rule, hazard::Rule::kReadAfterWrite);
  EXPECT_EQ(racy.findings[0].first.kernel, "add");
  EXPECT_EQ(racy.findings[0].second.kernel, "mul");
  EXPECT_EQ(racy.findings[0].label, "tmp");
  EXPECT_EQ(racy.findings[0].range, (ByteRange{0, 16384}));
}

TEST_P(RecordedSmokeTest, E5_AutomaticPlacesTheLeastBarriers) {
  const hazard::Report automatic = RecordAndCheck(BarrierMode::kAutomatic, false);
  EXPECT_TRUE(automatic.findings.empty());
  EXPECT_EQ(automatic.barriers.issued, automatic.barriers.least);
  EXPECT_EQ(automatic.barriers.issued, 1u);
}

}  // namespace
}  // namespace assay::gpu
