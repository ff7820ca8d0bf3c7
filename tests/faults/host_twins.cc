// Kinds 11 to 17: the host, lifetimes and pools.
#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assay/gpu.h"

#include "base/hash.h"
#include "gpu/backend.h"
#include "gpu/cpu/memory.h"
#include "support/forwarding_backend.h"
#include "tests/faults/checking.h"
#include "tests/faults/corpus.h"
#include "tests/faults/faulty_kernels.h"
#include "tests/faults/stage.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

constexpr uint64_t kBytes = 256;

Result<std::unique_ptr<gpu::Device>> CpuDevice(const gpu::DeviceOptions& options = {}) {
  ASSAY_ASSIGN_OR_RETURN(auto backend, gpu::MakeBackend("cpu", {.threads = 1}));
  return gpu::Device::Create(std::move(backend), options);
}

Result<gpu::Buffer> MakeBuffer(gpu::Device& device, std::string label, uint64_t bytes = kBytes) {
  return device.CreateBuffer({.size_bytes = bytes, .label = std::move(label), .digest = {}});
}

// --- Kinds 11 to 13: a command buffer in flight copies the first half of "in" to "out".

struct Flight {
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<gpu::Session> session;
  gpu::Buffer in, out;
};

Result<Flight> Launch() {
  Flight flight;
  ASSAY_ASSIGN_OR_RETURN(flight.device, CpuDevice());
  ASSAY_ASSIGN_OR_RETURN(flight.in, MakeBuffer(*flight.device, "in", 2 * kBytes));
  ASSAY_ASSIGN_OR_RETURN(flight.out, MakeBuffer(*flight.device, "out"));
  ASSAY_ASSIGN_OR_RETURN(flight.session, flight.device->CreateSession());
  ASSAY_ASSIGN_OR_RETURN(const auto from, flight.in.View(0, kBytes));
  ASSAY_TRY(DispatchCopyRows(*flight.device, *flight.session, {.width = kBytes / 4}, from,
                             flight.out.All()));
  ASSAY_TRY(flight.session->Commit());
  return flight;
}

Status WriteNextInput(uint64_t begin) {
  ASSAY_ASSIGN_OR_RETURN(const Flight flight, Launch());
  ASSAY_ASSIGN_OR_RETURN(const auto next, flight.in.View(begin, kBytes));
  return flight.device->Write(next, std::vector<std::byte>(kBytes));
}

Status ReadResult(bool wait) {
  ASSAY_ASSIGN_OR_RETURN(const Flight flight, Launch());
  if (wait) ASSAY_TRY(flight.session->Wait());
  std::vector<std::byte> result(kBytes);
  return flight.device->Read(flight.out.All(), result);
}

Status DropOwner(bool wait) {
  ASSAY_ASSIGN_OR_RETURN(Flight flight, Launch());
  if (wait) ASSAY_TRY(flight.session->Wait());
  flight.out = {};
  return flight.session->Wait();
}

// --- Kind 14

// Two values in one arena. The pool hands the first one's bytes to the third value as soon as
// nobody reads them any more; fence 2 makes that true.
void ReuseOfAnArena(Stage& stage) {
  const kernels::Matrix a = stage.Input("a");
  const kernels::Matrix b = stage.Input("b");
  const kernels::Matrix arena = stage.Room("arena", 2);
  const kernels::Matrix sum = stage.Room("sum");
  const kernels::Matrix first = stage.Rows(arena, 0, 1);
  const kernels::Matrix third = stage.Rows(arena, 0, 1);
  stage.Mul(a, b, first);
  stage.Fence();
  stage.Add(first, b, sum);
  stage.Fence();
  stage.Mul(b, b, third);
}

std::string CheckArena(Lost lost) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    ASSAY_ASSIGN_OR_RETURN(const auto stage, Stage::Create(&device, lost));
    ReuseOfAnArena(*stage);
    return stage->Finish();
  });
}

// --- Kind 15

Status ReleaseAndReset(bool twice) {
  ASSAY_ASSIGN_OR_RETURN(const auto device, CpuDevice());
  ASSAY_ASSIGN_OR_RETURN(const auto session, device->CreateSession());
  ASSAY_ASSIGN_OR_RETURN(gpu::Buffer old, MakeBuffer(*device, "old"));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, MakeBuffer(*device, "out"));
  ASSAY_TRY(DispatchCopyRows(*device, *session, {.width = 4}, old.All(), out.All()));
  session->Reset();
  ASSAY_TRY(old.Release());
  if (twice) ASSAY_TRY(old.Release());
  // Two buffers are two memories.
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer first, MakeBuffer(*device, "first"));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer second, MakeBuffer(*device, "second"));
  ASSAY_TRY(device->Write(first.All(), std::vector(kBytes, std::byte{1})));
  ASSAY_TRY(device->Write(second.All(), std::vector(kBytes, std::byte{2})));
  std::vector<std::byte> found(kBytes);
  ASSAY_TRY(device->Read(first.All(), found));
  if (found != std::vector(kBytes, std::byte{1})) {
    return Fail(ErrorCode::kInternal, "first", "Two buffers share their bytes.");
  }
  return {};
}

// The pool itself, below every check of the device.
Status PutBack(bool twice) {
  gpu::MemoryPool pool;
  pool.EnablePoison();
  ASSAY_ASSIGN_OR_RETURN(std::byte* const block, pool.Allocate(kBytes, "old"));
  pool.Free(block, kBytes, "old");
  if (twice) pool.Free(block, kBytes, "old");
  ASSAY_ASSIGN_OR_RETURN(std::byte* const first, pool.Allocate(kBytes, "first"));
  ASSAY_ASSIGN_OR_RETURN(std::byte* const second, pool.Allocate(kBytes, "second"));
  pool.Free(first, kBytes, "first");
  pool.Free(second, kBytes, "second");
  return {};
}

// --- Kind 16

// Hands a buffer out with what the last one of its size held.
class DirtyMemory final : public testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Result<std::unique_ptr<gpu::BackendBuffer>> CreateBuffer(const gpu::BufferDesc& desc) override {
    ASSAY_ASSIGN_OR_RETURN(auto buffer, ForwardingBackend::CreateBuffer(desc));
    if (left_.size() == desc.size_bytes) ASSAY_TRY(inner().Write(buffer.get(), 0, left_));
    return buffer;
  }
  Status Write(gpu::BackendBuffer* buffer, uint64_t offset,
               std::span<const std::byte> bytes) override {
    left_.assign(bytes.begin(), bytes.end());
    return ForwardingBackend::Write(buffer, offset, bytes);
  }

 private:
  std::vector<std::byte> left_;
};

// The digest of what a fresh buffer holds in a process whose earlier work left `work` in memory.
Result<std::string> ColdRun(bool dirty, std::byte work) {
  ASSAY_ASSIGN_OR_RETURN(auto backend, gpu::MakeBackend("cpu", {.threads = 1}));
  if (dirty) backend = std::make_unique<DirtyMemory>(std::move(backend));
  ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
  {
    ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer earlier, MakeBuffer(*device, "earlier"));
    ASSAY_TRY(device->Write(earlier.All(), std::vector(kBytes, work)));
  }
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer fresh, MakeBuffer(*device, "fresh"));
  std::string found(kBytes, ' ');
  ASSAY_TRY(device->Read(fresh.All(), std::as_writable_bytes(std::span(found))));
  return HexDigest(found);
}

std::string FiveColdRuns(bool dirty) {
  std::set<std::string> contents;
  for (int run = 1; run <= 5; ++run) {
    const auto found = ColdRun(dirty, static_cast<std::byte>(run));
    if (!found) return found.error().ToString();
    contents.insert(*found);
  }
  return contents.size() == 1 ? "" : std::to_string(contents.size()) + " contents in 5 runs";
}

std::string CheckFirstRead(uint64_t written) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    ASSAY_ASSIGN_OR_RETURN(const auto session, device.CreateSession());
    ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer in, MakeBuffer(device, "in"));
    ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, MakeBuffer(device, "out"));
    ASSAY_ASSIGN_OR_RETURN(const auto filled, in.View(0, written));
    ASSAY_TRY(device.Write(filled, std::vector<std::byte>(written)));
    ASSAY_TRY(DispatchCopyRows(device, *session, {.width = kBytes / 4}, in.All(), out.All()));
    ASSAY_TRY(session->Commit());
    return session->Wait();
  });
}

// --- Kind 17

// A queue with room for so many open command buffers.
class BoundedQueue final : public testing::ForwardingBackend {
 public:
  static constexpr int kRoom = 64;
  using ForwardingBackend::ForwardingBackend;
  Status OnBegin(gpu::BackendCommandBuffer&) override {
    if (open_ == kRoom) {
      return Fail(ErrorCode::kDevice, "queue", "All 64 command buffers of the queue are open.");
    }
    ++open_;
    return {};
  }
  void OnEnd() override { --open_; }

 private:
  int open_ = 0;
};

constexpr int kSteps = 200;

// Opens a command buffer as a step begins and leaves it when the step has nothing to do.
Status OpenEagerly(gpu::Backend& backend) {
  ASSAY_ASSIGN_OR_RETURN(const auto queue, backend.CreateQueue());
  std::vector<std::unique_ptr<gpu::BackendCommandBuffer>> left;
  for (int step = 0; step < kSteps; ++step) {
    ASSAY_ASSIGN_OR_RETURN(auto opened, queue->Begin());
    left.push_back(std::move(opened));
  }
  return {};
}

// The session opens one at the first dispatch.
Status OpenLazily(std::unique_ptr<gpu::Backend> backend) {
  ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
  ASSAY_ASSIGN_OR_RETURN(const auto session, device->CreateSession());
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer in, MakeBuffer(*device, "in"));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, MakeBuffer(*device, "out"));
  for (int step = 0; step < kSteps; ++step) {
    ASSAY_TRY(session->Barrier());
    ASSAY_TRY(session->Commit());
    ASSAY_TRY(session->Wait());
    ASSAY_TRY(DispatchCopyRows(*device, *session, {.width = 4}, in.All(), out.All()));
    // Half of the steps find that they have nothing to do after all.
    if (step % 2 == 0) {
      session->Reset();
      continue;
    }
    ASSAY_TRY(session->Commit());
    ASSAY_TRY(session->Wait());
  }
  return {};
}

Status RunSteps(bool eager) {
  ASSAY_ASSIGN_OR_RETURN(auto inner, gpu::MakeBackend("null"));
  auto backend = std::make_unique<BoundedQueue>(std::move(inner));
  return eager ? OpenEagerly(*backend) : OpenLazily(std::move(backend));
}

}  // namespace

std::vector<Twin> HostTwins() {
  using enum Catcher;
  return {
      GoldenTwin(11, "a trace: the next input while the last is read", "host_write",
                 "host-write 1:1 copy_f32 -> host in[16,32)"),
      ErrorTwin(
          11, kRuntime, "a program: the next input overlaps the last by a byte",
          [](bool faulty) { return WriteNextInput(faulty ? kBytes - 1 : kBytes); },
          "command-buffer in", "write bytes [255, 511)"),
      GoldenTwin(12, "a trace: a result before the wait", "host_read",
                 "host-read 1:1 copy_f32 -> host out[0,16)"),
      ErrorTwin(
          12, kRuntime, "a program: a result before the wait",
          [](bool faulty) { return ReadResult(!faulty); }, "command-buffer out",
          "read bytes [0, 256)"),
      GoldenTwin(13, "a trace: a buffer ends before the wait", "free_in_flight",
                 "free-in-flight 1:1 copy_f32 -> host tmp[0,64)"),
      ErrorTwin(
          13, kRuntime, "a program: the last owner goes before the wait",
          [](bool faulty) { return DropOwner(!faulty); }, "command-buffer out",
          "The last handle of buffer \"out\" (256 bytes) went"),
      MakeTwin(
          14, kHazardCheck, "bytes of an arena handed out at their last use",
          [](bool faulty) {
            return CheckArena(faulty ? Lost{2, 2} : kNothingLost);
          },
          "war 1:2 add -> 1:3 mul arena[0,256)"),
      GoldenTwin(15, "a trace: a buffer ends twice", "double_free",
                 "double-free host -> host tmp[0,64)"),
      ErrorTwin(15, kRuntime, "a program: released, reset, released again", ReleaseAndReset,
                "invalid-argument old", "buffer \"old\" (256 bytes) has been released before"),
      ErrorTwin(15, kCheckedMode, "the pool: a block is put back twice", PutBack, "device old",
                "was written after the buffer's end"),
      MakeTwin(16, kBits, "memory handed out as it was left", FiveColdRuns, "5 contents in 5 runs"),
      MakeTwin(
          16, kHazardCheck, "a byte that nobody wrote",
          [](bool faulty) { return CheckFirstRead(faulty ? kBytes - 1 : kBytes); },
          "note never-written 1:1 copy_rows in[255,256)"),
      ErrorTwin(17, kRuntime, "a command buffer opened by a step with nothing to do", RunSteps,
                "device queue", "All 64 command buffers of the queue are open."),
  };
}

}  // namespace assay::faults
