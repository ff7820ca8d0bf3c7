#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"

#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using testing::Bump;
using testing::MakeBuffer;
using testing::MakeDevice;
using testing::View;

std::unique_ptr<Session> Manual(Device& device) {
  return device.CreateSession({.barriers = BarrierMode::kManual}).value();
}

TEST(BufferView, E4_ViewsOfViewsAddUp) {
  const auto device = MakeDevice("null");
  const Buffer buffer = MakeBuffer(*device, 100);
  const BufferView outer = View(buffer, 10, 50);
  const BufferView inner = outer.Slice(20, 30).value();
  EXPECT_EQ(inner.range(), (ByteRange{30, 60}));
  EXPECT_EQ(inner.Slice(30, 0).value().range(), (ByteRange{60, 60}));
  EXPECT_EQ(inner.buffer(), buffer);
}

TEST(BufferView, E11_NeverReachesOutside) {
  const auto device = MakeDevice("null");
  const Buffer buffer = MakeBuffer(*device, 100, "kv");
  EXPECT_THAT(buffer.View(90, 11),
              FailsWith(ErrorCode::kInvalidArgument,
                        "Offset (90) plus length (11) is larger than the size (100)"));
  EXPECT_THAT(buffer.View(101, 0), FailsWith(ErrorCode::kInvalidArgument, "buffer \"kv\""));
  const BufferView view = View(buffer, 10, 50);
  // Inside the buffer, but not inside the view.
  EXPECT_THAT(view.Slice(20, 31), FailsWith(ErrorCode::kInvalidArgument, "size (50)"));
  EXPECT_THAT(view.Slice(UINT64_MAX, 2), FailsWith(ErrorCode::kInvalidArgument, ""));
  EXPECT_THAT(view.Slice(2, UINT64_MAX), FailsWith(ErrorCode::kInvalidArgument, ""));
}

TEST(BufferView, EmptyHandlesAreErrors) {
  EXPECT_THAT(Buffer().View(0, 0), FailsWith(ErrorCode::kInvalidArgument, "empty"));
  EXPECT_THAT(BufferView().Slice(0, 0), FailsWith(ErrorCode::kInvalidArgument, "empty"));
  EXPECT_THAT(Buffer().Release(), FailsWith(ErrorCode::kInvalidArgument, "empty"));
  const auto device = MakeDevice("null");
  EXPECT_THAT(device->Write({}, {}), FailsWith(ErrorCode::kInvalidArgument, "empty"));
}

TEST(Buffer, E12_SizeLimitsAreTypedErrors) {
  const auto device = MakeDevice("cpu");
  EXPECT_THAT(device->CreateBuffer({.size_bytes = 0, .label = "none", .digest = {}}),
              FailsWith(ErrorCode::kInvalidArgument, "buffer \"none\""));
  EXPECT_THAT(
      device->CreateBuffer(
          {.size_bytes = device->info().max_buffer_bytes + 1, .label = "too large", .digest = {}}),
      FailsWith(ErrorCode::kUnsupported, "limit"));
  EXPECT_THAT(
      device->CreateBuffer({.size_bytes = uint64_t{1} << 45, .label = "huge", .digest = {}}),
      FailsWith(ErrorCode::kAllocation, "buffer \"huge\" (35184372088832 bytes)"));
  EXPECT_EQ(device->live_buffers(), 0u);
  EXPECT_EQ(device->live_bytes(), 0u);
}

TEST(Buffer, TheLastHandleGivesTheMemoryBack) {
  const auto device = MakeDevice("cpu");
  std::optional<BufferView> view;
  {
    const Buffer buffer = MakeBuffer(*device, 100);
    EXPECT_EQ(device->live_buffers(), 1u);
    EXPECT_EQ(device->live_bytes(), 100u);
    view = buffer.All();
  }
  EXPECT_EQ(device->live_buffers(), 1u);
  view.reset();
  EXPECT_EQ(device->live_buffers(), 0u);
  EXPECT_EQ(device->live_bytes(), 0u);
}

TEST(Buffer, E11_DoubleReleaseIsAnError) {
  const auto device = MakeDevice("cpu");
  Buffer buffer = MakeBuffer(*device, 100, "twice");
  Buffer copy = buffer;
  EXPECT_THAT(buffer.Release(), Succeeds());
  EXPECT_EQ(device->live_buffers(), 0u);
  EXPECT_THAT(buffer.Release(), FailsWith(ErrorCode::kInvalidArgument, "released before"));
  EXPECT_THAT(copy.Release(), FailsWith(ErrorCode::kInvalidArgument, "buffer \"twice\""));
}

TEST(Buffer, E11_UseAfterReleaseIsAnError) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  Buffer buffer = MakeBuffer(*device, 64, "gone");
  const BufferView view = buffer.All();
  ASSERT_THAT(buffer.Release(), Succeeds());
  const auto used = FailsWith(ErrorCode::kInvalidArgument, "used after its release");
  std::vector<std::byte> bytes(64);
  EXPECT_THAT(device->Write(view, bytes), used);
  EXPECT_THAT(device->Read(view, bytes), used);
  EXPECT_THAT(device->Map(view, Access::kRead), used);
  EXPECT_THAT(view.Slice(0, 1), used);
  EXPECT_THAT(buffer.View(0, 1), used);
  EXPECT_THAT(session->Dispatch(Bump(*device, view).get()), used);
  EXPECT_EQ(session->counters().command_buffers, 0u);
}

TEST(Buffer, E11_ReleaseInFlightIsAnError) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  Buffer buffer = MakeBuffer(*device, 64, "busy");
  ASSERT_THAT(session->Dispatch(Bump(*device, buffer.All()).get()), Succeeds());
  const auto busy = FailsWith(ErrorCode::kCommandBuffer, "buffer \"busy\" (64 bytes)");
  EXPECT_THAT(buffer.Release(), busy);
  ASSERT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(buffer.Release(), busy);
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_THAT(buffer.Release(), Succeeds());
}

TEST(Buffer, E11_ResetLetsGoOfItsBuffers) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  Buffer buffer = MakeBuffer(*device, 64);
  ASSERT_THAT(session->Dispatch(Bump(*device, buffer.All()).get()), Succeeds());
  session->Reset();
  EXPECT_THAT(buffer.Release(), Succeeds());
}

TEST(Buffer, E11_DroppedInFlightIsReportedByTheNextWait) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  {
    const Buffer buffer = MakeBuffer(*device, 64, "dropped");
    ASSERT_THAT(session->Dispatch(Bump(*device, buffer.All()).get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
  }
  EXPECT_EQ(device->live_buffers(), 1u) << "the memory must stay for the workers";
  EXPECT_THAT(session->Wait(), FailsWith(ErrorCode::kCommandBuffer, "buffer \"dropped\""));
  EXPECT_EQ(device->live_buffers(), 0u);
  EXPECT_THAT(session->Wait(), Succeeds());
}

TEST(Buffer, E11_DroppedWhileEncodingIsReportedByTheNextWait) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  ASSERT_THAT(session->Dispatch(Bump(*device, MakeBuffer(*device, 64, "local").All()).get()),
              Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Wait(), FailsWith(ErrorCode::kCommandBuffer, "buffer \"local\""));
}

TEST(Buffer, DroppedAfterWaitIsNoError) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  {
    const Buffer buffer = MakeBuffer(*device, 64);
    ASSERT_THAT(session->Dispatch(Bump(*device, buffer.All()).get()), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
    ASSERT_THAT(session->Wait(), Succeeds());
  }
  EXPECT_EQ(device->live_buffers(), 0u);
  EXPECT_THAT(session->Wait(), Succeeds());
}

TEST(Buffer, E11_OfAnotherDeviceIsAnError) {
  const auto device = MakeDevice("cpu");
  const auto other = MakeDevice("cpu");
  const auto session = Manual(*device);
  const Buffer foreign = MakeBuffer(*other, 64, "foreign");
  const auto refused = FailsWith(ErrorCode::kInvalidArgument, "another device");
  EXPECT_THAT(session->Dispatch(Bump(*device, foreign.All()).get()), refused);
  std::vector<std::byte> bytes(64);
  EXPECT_THAT(device->Write(foreign.All(), bytes), refused);
  EXPECT_THAT(device->Read(foreign.All(), bytes), refused);
  EXPECT_THAT(device->Map(foreign.All(), Access::kRead), refused);
}

TEST(HostAccess, E11_ConflictWithACommandBufferInFlightIsAnError) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  const Buffer in = MakeBuffer(*device, 256, "in");
  const Buffer out = MakeBuffer(*device, 256, "out");
  ASSERT_THAT(session->Dispatch(testing::Elementwise(*device, "add", View(in, 0, 128),
                                                     View(in, 0, 128), View(out, 64, 128))
                                    .get()),
              Succeeds());
  std::vector<std::byte> bytes(64);
  // Not committed yet: the host still prepares the inputs.
  EXPECT_THAT(device->Write(View(in, 0, 64), bytes), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());

  const auto conflict = FailsWith(ErrorCode::kCommandBuffer, "in flight");
  EXPECT_THAT(device->Write(View(in, 64, 64), bytes), conflict);
  EXPECT_THAT(device->Map(View(in, 64, 64), Access::kWrite), conflict);
  EXPECT_THAT(device->Read(View(in, 64, 64), bytes), Succeeds());
  EXPECT_THAT(device->Read(View(out, 64, 64), bytes), conflict);
  EXPECT_THAT(device->Map(View(out, 128, 64), Access::kRead), conflict);
  // Outside the bound ranges, up to the touching byte.
  EXPECT_THAT(device->Write(View(in, 128, 64), bytes), Succeeds());
  EXPECT_THAT(device->Read(View(out, 0, 64), bytes), Succeeds());
  EXPECT_THAT(device->Write(View(out, 192, 64), bytes), Succeeds());

  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_THAT(device->Read(View(out, 64, 64), bytes), Succeeds());
  EXPECT_THAT(device->Write(View(in, 0, 64), bytes), Succeeds());
}

TEST(HostAccess, CommitUnderAConflictingMappingIsAnError) {
  const auto device = MakeDevice("cpu");
  const auto session = Manual(*device);
  Buffer buffer = MakeBuffer(*device, 64, "mapped");
  ASSERT_THAT(session->Dispatch(Bump(*device, buffer.All()).get()), Succeeds());
  {
    HostMapping mapping = device->Map(View(buffer, 0, 4), Access::kRead).value();
    EXPECT_THAT(session->Commit(), FailsWith(ErrorCode::kCommandBuffer, "buffer \"mapped\""));
    EXPECT_EQ(session->counters().commits, 0u);
    // A moved mapping is still the one mapping.
    const HostMapping moved = std::move(mapping);
    EXPECT_THAT(session->Commit(), FailsWith(ErrorCode::kCommandBuffer, "[0, 4)"));
    EXPECT_THAT(buffer.Release(), FailsWith(ErrorCode::kCommandBuffer, "buffer \"mapped\""));
  }
  EXPECT_THAT(session->Commit(), Succeeds());
  EXPECT_THAT(session->Wait(), Succeeds());
  EXPECT_THAT(buffer.Release(), Succeeds());
}

TEST(HostAccess, SizesMustAgree) {
  const auto device = MakeDevice("cpu");
  const Buffer buffer = MakeBuffer(*device, 64, "sized");
  std::vector<std::byte> bytes(63);
  EXPECT_THAT(device->Write(buffer.All(), bytes),
              FailsWith(ErrorCode::kInvalidArgument, "(63) differ from the size (64)"));
  EXPECT_THAT(device->Read(buffer.All(), bytes),
              FailsWith(ErrorCode::kInvalidArgument, "buffer \"sized\""));
}

TEST(HostAccess, NullBackendCannotMap) {
  const auto device = MakeDevice("null");
  const Buffer buffer = MakeBuffer(*device, 64);
  EXPECT_THAT(device->Map(buffer.All(), Access::kRead),
              FailsWith(ErrorCode::kUnsupported, "not host-visible"));
}

TEST(ImportHostMemory, BindsTheCallersBytesAndRefusesWrites) {
  const auto device = MakeDevice("cpu");
  const std::vector<float> values = {1, 2, 3, 4};
  const BufferDesc desc{.size_bytes = 16, .label = "imported", .digest = {}};
  EXPECT_THAT(device->ImportHostMemory(desc, std::as_bytes(std::span(values)).first(12)),
              FailsWith(ErrorCode::kInvalidArgument, "(12 bytes)"));
  const Buffer imported = device->ImportHostMemory(desc, std::as_bytes(std::span(values))).value();
  const Buffer out = MakeBuffer(*device, 16);
  const auto session = Manual(*device);
  ASSERT_THAT(
      session->Dispatch(
          testing::Elementwise(*device, "add", imported.All(), imported.All(), out.All()).get()),
      Succeeds());
  const auto refused = FailsWith(ErrorCode::kInvalidArgument, "cannot be written");
  EXPECT_THAT(session->Dispatch(Bump(*device, imported.All()).get()), refused);
  EXPECT_THAT(device->Write(imported.All(), std::as_bytes(std::span(values))), refused);
  EXPECT_THAT(device->Map(imported.All(), Access::kReadWrite), refused);
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
  EXPECT_EQ(testing::ReadFloats(*device, out.All()), (std::vector<float>{2, 4, 6, 8}));
}

TEST(Device, E6_ABackendThatCannotVerifyRefusesToBeChecked) {
  const auto refused = Device::Create(MakeBackend("null").value(), {.checked = true});
  EXPECT_THAT(refused, FailsWith(ErrorCode::kUnsupported, "Backend null cannot verify"));
  EXPECT_THAT(Device::Create(MakeBackend("cpu").value(), {.checked = true}), Succeeds());
}

TEST(Device, E11_BuffersAndSessionsThatOutliveItAreErrors) {
  auto device = MakeDevice("cpu");
  auto session = Manual(*device);
  const auto committed = Manual(*device);
  const auto open = Manual(*device);
  Buffer buffer = MakeBuffer(*device, 64, "survivor");
  const BufferView view = buffer.All();
  const auto bump = Bump(*device, view);
  HostMapping mapping = device->Map(View(MakeBuffer(*device, 4), 0, 4), Access::kRead).value();
  ASSERT_THAT(open->Dispatch(bump.get()), Succeeds());
  ASSERT_THAT(committed->Dispatch(bump.get()), Succeeds());
  ASSERT_THAT(committed->Commit(), Succeeds());
  device.reset();

  const auto gone = FailsWith(ErrorCode::kDevice, "has been destroyed");
  EXPECT_THAT(session->Dispatch(bump.get()), gone);
  EXPECT_THAT(session->Barrier(), gone);
  EXPECT_THAT(session->Commit(), gone);
  EXPECT_THAT(session->Wait(), gone);
  EXPECT_THAT(session->BeginCapture(), gone);
  EXPECT_THAT(session->EndCapture(), gone);
  EXPECT_THAT(open->Commit(), gone);
  session->Reset();
  EXPECT_EQ(open->counters().encoders_created, open->counters().encoders_released);
  EXPECT_THAT(buffer.Release(), gone);
  EXPECT_THAT(view.Slice(0, 1), gone);
  EXPECT_THAT(buffer.View(0, 1), gone);
  EXPECT_EQ(buffer.label(), "survivor");
}

}  // namespace
}  // namespace assay::gpu
