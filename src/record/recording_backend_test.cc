#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "base/hash.h"
#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/expect_error.h"
#include "tests/conformance/spy_backend.h"
#include "tests/conformance/test_kernels.h"

namespace assay::record {
namespace {

using assay::testing::FailsWith;
using assay::testing::Succeeds;
using gpu::BarrierMode;
using gpu::Buffer;
using gpu::Device;
using gpu::Session;

// Of every test kernel: their source digest and target.
std::string KernelDigest() { return HexDigest(std::string_view("7e57test")); }

// Records what `program` does on the cpu backend; the text without its end line, once the reader
// has found the whole of it sound.
template <typename Program>
std::string Record(const Program& program, std::unique_ptr<gpu::Backend> inner = nullptr,
                   const gpu::DeviceOptions& options = {}) {
  if (inner == nullptr) inner = gpu::MakeBackend("cpu", {.threads = 2}).value();
  std::string text;
  const auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  {
    const auto device =
        gpu::testing::MakeDevice(MakeRecordingBackend(std::move(inner), writer.get()), options);
    program(*device);
  }
  EXPECT_THAT(writer->Close(), Succeeds());
  const auto reader = trace::TraceReader::FromMemory(text, "recorded").value();
  for (;;) {
    const auto event = reader->Next();
    EXPECT_THAT(event, Succeeds());
    if (!event || !event->has_value()) break;
  }
  return text.substr(0, text.rfind("end "));
}

void SmallProgram(Device& device) {
  const auto make = [&](uint64_t size_bytes, BufferKind kind, std::string label) {
    return device
        .CreateBuffer({.size_bytes = size_bytes,
                       .kind = kind,
                       .label = std::move(label),
                       .digest = kind == BufferKind::kWeight ? "ab12" : ""})
        .value();
  };
  const Buffer weight = make(256, BufferKind::kWeight, "w");
  const Buffer sum = make(512, BufferKind::kActivation, "");
  const std::vector<float> ones(64, 1.0f);
  gpu::testing::WriteFloats(device, weight.All(), ones);

  const auto session = device.CreateSession({.barriers = BarrierMode::kAutomatic}).value();
  const auto half = gpu::testing::View(sum, 256, 256);
  const auto add = gpu::testing::Elementwise(device, "add", weight.All(), weight.All(), half);
  ASSERT_THAT(session->Dispatch(add.get()), Succeeds());
  ASSERT_THAT(session->Dispatch(gpu::testing::Bump(device, half).get()), Succeeds());
  ASSERT_THAT(session->Commit(), Succeeds());
  {
    const Buffer counter = make(4, BufferKind::kScratch, "c");
    auto meet = gpu::testing::Meet(device, counter.All(), 1);
    meet.bindings()[0].exact = false;
    meet.fields().shared_bytes = 64;
    ASSERT_THAT(session->Dispatch(meet.get()), Succeeds());
    // Abandoned: no line of it.
    session->Reset();
    ASSERT_THAT(session->Dispatch(meet.get()), Succeeds());
    ASSERT_THAT(session->Barrier(), Succeeds());
    ASSERT_THAT(session->Commit(), Succeeds());
    ASSERT_THAT(session->Wait(), Succeeds());
  }
  gpu::testing::ReadWords(device, gpu::testing::View(sum, 256, 4));
  { const auto mapping = device.Map(gpu::testing::View(sum, 0, 8), Access::kReadWrite).value(); }
}

TEST(RecordingBackend, T1_ASmallProgramWritesTheGoldenTrace) {
  const std::string digest = KernelDigest();
  const std::string golden =
      "assay-trace 2\n"
      "buffer #0 size=256 kind=weight label=\"w\" digest=ab12\n"
      "buffer #1 size=512 kind=activation\n"
      "write #0[0,256)\n"
      "kernel k0 name=add digest=" +
      digest +
      " workgroup=64,1,1\n"
      "kernel k1 name=bump digest=" +
      digest +
      " workgroup=64,1,1\n"
      "begin\n"
      "dispatch k0 grid=1,1,1 r#0[0,256) r#0[0,256) w#1[256,512)\n"
      "barrier\n"
      "dispatch k1 grid=1,1,1 rw#1[256,512)\n"
      "commit\n"
      "buffer #2 size=4 kind=scratch label=\"c\"\n"
      "kernel k2 name=meet digest=" +
      digest +
      " workgroup=64,1,1\n"
      "begin\n"
      "dispatch k2 grid=1,1,1 shared=64 args=01000000 rw#2[0,4)?\n"
      "barrier\n"
      "commit\n"
      "wait\n"
      "free #2\n"
      "read #1[256,260)\n"
      "read #1[0,8)\n"
      "write #1[0,8)\n"
      "free #1\n"
      "free #0\n";
  EXPECT_EQ(Record(SmallProgram), golden);
}

TEST(RecordingBackend, E3_UnrecordedTheSameProgramHasTheSameCounters) {
  gpu::Counters recorded;
  Record([&](Device& device) {
    SmallProgram(device);
    recorded = device.counters();
  });
  const auto device = gpu::testing::MakeDevice("cpu");
  SmallProgram(*device);
  EXPECT_EQ(device->counters(), recorded);
  EXPECT_EQ(recorded.dispatches, 4u);
}

TEST(RecordingBackend, ACheckedDeviceRecordsTheSame) {
  EXPECT_EQ(Record(SmallProgram, nullptr, {.checked = true}), Record(SmallProgram));
}

// Each job makes some buffers and fills them, as the loader of a model does.
void LoadInJobs(Device& device, int threads) {
  const std::vector<size_t> per_job = {2, 1, 0, 3, 2, 1, 4, 1};
  std::vector<std::vector<Buffer>> made(per_job.size());
  std::atomic<int> arrived{0};
  const Status loaded =
      InOrder(per_job.size(), threads, device.load_observer(), [&](size_t job) -> Status {
        // With several threads, jobs really overlap: as many meet here as there are threads.
        const int turn = arrived.fetch_add(1);
        if (turn < threads) {
          while (arrived.load() < threads) std::this_thread::yield();
        }
        for (size_t k = 0; k < per_job[job]; ++k) {
          ASSAY_ASSIGN_OR_RETURN(
              Buffer buffer,
              device.CreateBuffer({.size_bytes = 64 * (job + 1),
                                   .label = std::to_string(job) + "." + std::to_string(k),
                                   .digest = {}}));
          const std::vector<std::byte> bytes(buffer.size_bytes());
          ASSAY_TRY(device.Write(buffer.All(), bytes));
          made[job].push_back(std::move(buffer));
        }
        return {};
      });
  ASSERT_THAT(loaded, Succeeds());
  const auto session = device.CreateSession().value();
  for (const std::vector<Buffer>& buffers : made) {
    for (const Buffer& buffer : buffers) {
      ASSERT_THAT(session->Dispatch(gpu::testing::Bump(device, buffer.All()).get()), Succeeds());
    }
  }
  ASSERT_THAT(session->Commit(), Succeeds());
  ASSERT_THAT(session->Wait(), Succeeds());
}

TEST(RecordingBackend, T2_TheBytesDoNotDependOnTheLoaderThreads) {
  const std::string one = Record([](Device& device) { LoadInJobs(device, 1); });
  EXPECT_NE(one.find("buffer #13"), std::string::npos);
  EXPECT_EQ(one.find("refused"), std::string::npos);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(Record([](Device& device) { LoadInJobs(device, 8); }), one);
  }
}

TEST(RecordingBackend, T7_ABufferMadeOffThreadIsRefused) {
  const std::string text = Record(
      [](Device& device) { std::thread([&] { gpu::testing::MakeBuffer(device, 64); }).join(); });
  EXPECT_NE(text.find("refused off-thread: 1"), std::string::npos) << text;
}

TEST(RecordingBackend, WhatTheInnerBackendRefusesIsNotRecorded) {
  using gpu::testing::SpyCall;
  for (const SpyCall call : {SpyCall::kCreateBuffer, SpyCall::kDispatch, SpyCall::kBarrier,
                             SpyCall::kCommit, SpyCall::kWait, SpyCall::kWrite, SpyCall::kRead}) {
    SCOPED_TRACE(static_cast<int>(call));
    const auto spy = std::make_shared<gpu::testing::Spy>();
    const std::string text = Record(
        [&](Device& device) {
          const Buffer buffer = gpu::testing::MakeBuffer(device, 4, "");
          const auto session = device.CreateSession({.barriers = BarrierMode::kManual}).value();
          const auto bump = gpu::testing::Bump(device, buffer.All());
          std::vector<std::byte> bytes(4);
          spy->FailNth(call, 1);
          // One of these fails; none that was refused may leave a line.
          (void)device.CreateBuffer({.size_bytes = 8, .label = "refused", .digest = {}});
          (void)device.Write(buffer.All(), bytes);
          (void)session->Dispatch(bump.get());
          (void)session->Barrier();
          (void)session->Commit();
          (void)session->Wait();
          (void)device.Read(buffer.All(), bytes);
        },
        gpu::testing::MakeSpyBackend(gpu::MakeBackend("cpu", {.threads = 1}).value(), spy));
    ASSERT_TRUE(spy->failed());
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    EXPECT_EQ(has("refused"), call != SpyCall::kCreateBuffer);
    EXPECT_EQ(has("\nwrite"), call != SpyCall::kWrite);
    const bool committed =
        call != SpyCall::kDispatch && call != SpyCall::kBarrier && call != SpyCall::kCommit;
    EXPECT_EQ(has("begin"), committed);
    EXPECT_EQ(has("\ncommit"), committed);
    // Where the program's own wait fails, the session's end waits.
    EXPECT_EQ(has("\nwait"), committed);
    // A failed wait leaves the work in flight, so that the read is refused before it gets here.
    EXPECT_EQ(has("\nread"), call != SpyCall::kRead && call != SpyCall::kWait);
  }
}

// A backend whose load observer must hear of loads as well.
class Listening final : public LoadObserver {
 public:
  uint64_t OnLoadBegin(size_t) override { return Say("begin", 70); }
  void OnJobBegin(uint64_t load, size_t) override { Say("job begin", load); }
  void OnJobEnd(uint64_t load, size_t, bool) override { Say("job end", load); }
  void OnLoadEnd(uint64_t load) override { Say("end", load); }
  std::vector<std::string> log;

 private:
  uint64_t Say(const char* word, uint64_t load) {
    log.push_back(std::string(word) + " " + std::to_string(load));
    return load;
  }
};

TEST(RecordingBackend, TellsTheInnerObserverAndTheWriterOfLoads) {
  Listening listening;
  const auto spy = std::make_shared<gpu::testing::Spy>();
  spy->set_load_observer(&listening);
  const std::string text =
      Record([](Device& device) { LoadInJobs(device, 1); },
             gpu::testing::MakeSpyBackend(gpu::MakeBackend("cpu").value(), spy));
  EXPECT_EQ(listening.log.front(), "begin 70");
  EXPECT_EQ(listening.log[1], "job begin 70");
  EXPECT_EQ(listening.log[2], "job end 70");
  EXPECT_EQ(listening.log.back(), "end 70");
  EXPECT_EQ(listening.log.size(), 18u);
  EXPECT_EQ(text, Record([](Device& device) { LoadInJobs(device, 1); }));
}

}  // namespace
}  // namespace assay::record
