// Kinds 18 to 24: aliasing, views and sizes.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "support/forwarding_backend.h"
#include "tests/conformance/test_kernels.h"
#include "tests/faults/checking.h"
#include "tests/faults/corpus.h"
#include "tests/faults/faulty_kernels.h"
#include "tests/faults/stage.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

using gpu::testing::TestDispatch;
using gpu::testing::View;

constexpr uint32_t kWords = 64;
constexpr uint64_t kRowBytes = kWords * sizeof(uint32_t);

// A cpu device with a session, for programs whose results or accesses are looked at.
struct Bench {
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<gpu::Session> session;

  Result<gpu::Buffer> Make(std::string label, uint64_t bytes) {
    return device->CreateBuffer({.size_bytes = bytes, .label = std::move(label), .digest = {}});
  }
  // A buffer of `rows` rows; all words of row r are r + 1.
  Result<gpu::Buffer> MakeRows(std::string label, uint32_t rows) {
    ASSAY_ASSIGN_OR_RETURN(gpu::Buffer buffer, Make(std::move(label), rows * kRowBytes));
    std::vector<uint32_t> words;
    for (uint32_t row = 0; row < rows; ++row) words.resize(words.size() + kWords, row + 1);
    ASSAY_TRY(device->Write(buffer.All(), std::as_bytes(std::span(words))));
    return buffer;
  }
  Status Run() {
    ASSAY_TRY(session->Commit());
    return session->Wait();
  }
  // Where `buffer` is not what MakeRows gives, by rows: "rows 1 2", or "".
  Result<std::string> RowsThatDiffer(const gpu::Buffer& buffer) {
    std::vector<uint32_t> words(buffer.size_bytes() / sizeof(uint32_t));
    ASSAY_TRY(device->Read(buffer.All(), std::as_writable_bytes(std::span(words))));
    std::string differ;
    for (uint32_t row = 0; row * kWords < words.size(); ++row) {
      const auto found = std::span(words).subspan(size_t{row} * kWords, kWords);
      const auto is_own = [&](uint32_t word) { return word == row + 1; };
      if (!std::ranges::all_of(found, is_own)) differ += fmt::format(" {}", row);
    }
    return differ.empty() ? "" : "rows" + differ;
  }
};

using Around = std::function<std::unique_ptr<gpu::Backend>(std::unique_ptr<gpu::Backend>)>;

Result<Bench> MakeBench(const gpu::DeviceOptions& options = {}, const Around& around = nullptr) {
  Bench bench;
  ASSAY_ASSIGN_OR_RETURN(auto backend, gpu::MakeBackend("cpu", {.threads = 1}));
  if (around) backend = around(std::move(backend));
  ASSAY_ASSIGN_OR_RETURN(bench.device, gpu::Device::Create(std::move(backend), options));
  ASSAY_ASSIGN_OR_RETURN(bench.session, bench.device->CreateSession());
  return bench;
}

std::string TextOf(const Result<std::string>& result) {
  return result ? *result : result.error().ToString();
}

// Runs one copy_rows on a checked device and says what Wait reports.
Status RunChecked(const CopyRows& copy, uint64_t in_begin, uint64_t in_bytes, uint64_t out_begin,
                  uint64_t out_bytes) {
  ASSAY_ASSIGN_OR_RETURN(Bench bench, MakeBench({.checked = true}));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer in, bench.MakeRows("in", 8));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, bench.Make("out", 8 * kRowBytes));
  ASSAY_ASSIGN_OR_RETURN(const auto from, in.View(in_begin, in_bytes));
  ASSAY_ASSIGN_OR_RETURN(const auto to, out.View(out_begin, out_bytes));
  ASSAY_TRY(DispatchCopyRows(*bench.device, *bench.session, copy, from, to));
  return bench.Run();
}

// --- Kind 18: one buffer of q, k and v

// Binds every view that is read at the start of its buffer.
class IgnoresOffsets final : public testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Status OnDispatch(gpu::BackendCommandBuffer& inner,
                    const gpu::BackendDispatch& dispatch) override {
    std::vector<gpu::BackendBinding> bindings(dispatch.bindings.begin(), dispatch.bindings.end());
    for (gpu::BackendBinding& binding : bindings) {
      if (!Writes(binding.access)) binding.range = {0, binding.range.size()};
    }
    gpu::BackendDispatch changed = dispatch;
    changed.bindings = bindings;
    return inner.Dispatch(changed);
  }
};

Result<std::string> ReadQkv(bool ignore_offsets) {
  Around around;
  if (ignore_offsets) {
    around = [](std::unique_ptr<gpu::Backend> inner) -> std::unique_ptr<gpu::Backend> {
      return std::make_unique<IgnoresOffsets>(std::move(inner));
    };
  }
  ASSAY_ASSIGN_OR_RETURN(Bench bench, MakeBench({}, around));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer qkv, bench.MakeRows("qkv", 3));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, bench.Make("out", 3 * kRowBytes));
  for (uint64_t part = 0; part < 3; ++part) {
    ASSAY_TRY(DispatchCopyRows(*bench.device, *bench.session, {.width = kWords},
                               View(qkv, part * kRowBytes, kRowBytes),
                               View(out, part * kRowBytes, kRowBytes)));
  }
  ASSAY_TRY(bench.Run());
  return bench.RowsThatDiffer(out);
}

// The kernel itself goes back to where its buffer begins.
Status CopyFromView(bool from_start_of_buffer) {
  const int32_t back = from_start_of_buffer ? -static_cast<int32_t>(kWords) : 0;
  return RunChecked({.in_begin = back, .width = kWords}, kRowBytes, kRowBytes, 0, kRowBytes);
}

// --- Kinds 19 and 21, on traces

// One dispatch writes `busy` of "scratch", and another, in the same group, clears what `cleared`
// makes of it.
std::string CheckClear(ByteRange busy,
                       const std::function<Result<gpu::BufferView>(const gpu::Buffer&)>& cleared) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    gpu::testing::RegisterTestKernels(device);
    ASSAY_ASSIGN_OR_RETURN(const auto session,
                           device.CreateSession({.barriers = gpu::BarrierMode::kManual}));
    const gpu::Buffer scratch = gpu::testing::MakeBuffer(device, kRowBytes, "scratch");
    const gpu::Buffer zeros = gpu::testing::MakeBuffer(device, kRowBytes, "zeros");
    ASSAY_TRY(device.Write(zeros.All(), std::vector<std::byte>(kRowBytes)));
    ASSAY_ASSIGN_OR_RETURN(const gpu::BufferView view, cleared(scratch));
    const gpu::BufferView written = View(scratch, busy.begin, busy.size());
    const gpu::BufferView in = View(zeros, 0, busy.size());
    const gpu::BufferView zero = View(zeros, 0, view.size_bytes());
    ASSAY_TRY(session->Dispatch(gpu::testing::Elementwise(device, "add", in, in, written).get()));
    ASSAY_TRY(session->Dispatch(gpu::testing::Elementwise(device, "mul", zero, zero, view).get()));
    ASSAY_TRY(session->Commit());
    return session->Wait();
  });
}

// Bytes [32, 64) of the second half, the first half being busy.
std::string CheckViewOfView(bool first_offset_lost) {
  return CheckClear({0, 128}, [&](const gpu::Buffer& scratch) -> Result<gpu::BufferView> {
    if (first_offset_lost) return scratch.View(32, 32);
    ASSAY_ASSIGN_OR_RETURN(const auto half, scratch.View(128, 128));
    return half.Slice(32, 32);
  });
}

// Bytes [64, 96), the second half being busy.
std::string CheckClearByEnd(bool end_for_length) {
  return CheckClear({128, 256}, [&](const gpu::Buffer& scratch) {
    return scratch.View(64, end_for_length ? 96 : 32);
  });
}

// Every slot's row is written to one scratch buffer, and each slot then works on its own in place.
std::string CheckSlots(uint32_t slots, uint64_t stride) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    ASSAY_ASSIGN_OR_RETURN(const auto stage, Stage::Create(&device, kNothingLost));
    const kernels::Matrix in = stage->Input("in", slots);
    const kernels::Matrix b = stage->Input("b");
    const kernels::Matrix scratch = stage->Room("scratch", slots);
    for (uint32_t slot = 0; slot < slots; ++slot) {
      stage->Add(stage->Rows(in, slot, 1), b, stage->Rows(scratch, slot, 1));
    }
    stage->Fence();
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const kernels::Matrix own = stage->At(scratch, slot * stride, slot * stride + kRowBytes);
      stage->Mul(own, b, own);
    }
    return stage->Finish();
  });
}

// The same by results: rows packed `kWords` apart are read `stride` words apart.
Result<std::string> UnpackSlots(uint32_t slots, uint32_t stride) {
  ASSAY_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer in, bench.MakeRows("in", slots));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer scratch, bench.Make("scratch", slots * kRowBytes));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, bench.Make("out", slots * kRowBytes));
  const auto copy = [&](const gpu::Buffer& from, uint32_t from_stride, const gpu::Buffer& to) {
    return DispatchCopyRows(
        *bench.device, *bench.session,
        {.rows = slots, .width = kWords, .in_stride = from_stride, .out_stride = kWords},
        from.All(), to.All());
  };
  ASSAY_TRY(copy(in, kWords, scratch));
  ASSAY_TRY(copy(scratch, stride, out));
  ASSAY_TRY(bench.Run());
  return bench.RowsThatDiffer(out);
}

// One slot alone is right by either stride.
std::string CheckSlotsByStride(uint64_t stride) {
  const std::string alone = CheckSlots(1, stride);
  return alone.empty() ? CheckSlots(3, stride) : "alone: " + alone;
}
std::string UnpackSlotsByStride(uint32_t stride) {
  const std::string alone = TextOf(UnpackSlots(1, stride));
  return alone.empty() ? TextOf(UnpackSlots(3, stride)) : "alone: " + alone;
}

// --- Kind 20

// Four rows of 16 words, 24 words apart; another tensor begins where they are said to end.
Status CopyStrided(uint64_t declared_bytes) {
  return RunChecked({.rows = 4, .width = 16, .in_stride = 16, .out_stride = 24}, 0, kRowBytes, 0,
                    declared_bytes);
}

// --- Kinds 22 and 23, on traces

// x[out] = x[0,64) + a.
std::string CheckOneBuffer(ByteRange out) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    gpu::testing::RegisterTestKernels(device);
    ASSAY_ASSIGN_OR_RETURN(const auto session, device.CreateSession());
    const gpu::Buffer x = gpu::testing::MakeBuffer(device, 128, "x");
    const gpu::Buffer a = gpu::testing::MakeBuffer(device, 64, "a");
    ASSAY_TRY(device.Write(x.All(), std::vector<std::byte>(128)));
    ASSAY_TRY(device.Write(a.All(), std::vector<std::byte>(64)));
    const TestDispatch add = gpu::testing::Elementwise(device, "add", View(x, 0, 64), a.All(),
                                                       View(x, out.begin, out.size()));
    ASSAY_TRY(session->Dispatch(add.get()));
    ASSAY_TRY(session->Commit());
    return session->Wait();
  });
}

// One row of a table is written while another dispatch binds the whole of it.
std::string CheckWideBinding(bool exact) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    gpu::testing::RegisterTestKernels(device);
    ASSAY_ASSIGN_OR_RETURN(const auto session,
                           device.CreateSession({.barriers = gpu::BarrierMode::kManual}));
    const gpu::Buffer in = gpu::testing::MakeBuffer(device, 256, "in");
    const gpu::Buffer table = gpu::testing::MakeBuffer(device, 256, "table");
    const gpu::Buffer out = gpu::testing::MakeBuffer(device, 256, "out");
    ASSAY_TRY(device.Write(in.All(), std::vector<std::byte>(256)));
    ASSAY_TRY(device.Write(table.All(), std::vector<std::byte>(256)));
    const gpu::BufferView row = View(in, 0, 64);
    ASSAY_TRY(session->Dispatch(
        gpu::testing::Elementwise(device, "add", row, row, View(table, 128, 64)).get()));
    TestDispatch reader =
        gpu::testing::Elementwise(device, "mul", table.All(), in.All(), out.All());
    reader.bindings()[0].exact = exact;
    ASSAY_TRY(session->Dispatch(reader.get()));
    ASSAY_TRY(session->Commit());
    return session->Wait();
  });
}

// --- Kind 24

// Four rows are copied into a view of so many.
Status CopyFourRowsInto(uint64_t rows) {
  return RunChecked({.rows = 4, .width = kWords, .in_stride = kWords, .out_stride = kWords}, 0,
                    4 * kRowBytes, 0, rows * kRowBytes);
}

Result<std::string> CopyRowsOfFour(uint32_t rows) {
  ASSAY_ASSIGN_OR_RETURN(Bench bench, MakeBench());
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer in, bench.MakeRows("in", 4));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer out, bench.Make("out", 4 * kRowBytes));
  ASSAY_TRY(
      DispatchCopyRows(*bench.device, *bench.session,
                       {.rows = rows, .width = kWords, .in_stride = kWords, .out_stride = kWords},
                       in.All(), out.All()));
  ASSAY_TRY(bench.Run());
  return bench.RowsThatDiffer(out);
}

Twin CheckedTwin(int kind, std::string_view name, std::function<Status(bool faulty)> run,
                 std::string part) {
  return ErrorTwin(kind, Catcher::kCheckedMode, name, std::move(run), "invalid-argument copy_rows",
                   std::move(part));
}

}  // namespace

std::vector<Twin> ViewTwins() {
  const std::string overlap =
      "raw 1:4 mul -> 1:5 mul scratch[192,256); waw 1:4 mul -> 1:5 mul scratch[192,256); "
      "raw 1:5 mul -> 1:6 mul scratch[384,448); waw 1:5 mul -> 1:6 mul scratch[384,448)";
  return {
      MakeTwin(
          18, Catcher::kBits, "a bind without the view's offset",
          [](bool faulty) { return TextOf(ReadQkv(faulty)); }, "rows 1 2"),
      CheckedTwin(18, "a kernel that reads from the start of its buffer", CopyFromView,
                  "reads bytes [0, 256) of buffer \"in\""),
      MakeTwin(19, Catcher::kHazardCheck, "a view of a view without the first offset",
               CheckViewOfView, "waw 1:1 add -> 1:2 mul scratch[32,64)"),
      MakeTwin(19, Catcher::kHazardCheck, "a clear that takes its end for its length",
               CheckClearByEnd, "waw 1:1 add -> 1:2 mul scratch[128,160)"),
      CheckedTwin(
          20, "a strided write's extent without half of its last row",
          [](bool faulty) { return CopyStrided(faulty ? 320 : 352); },
          "writes bytes [320, 352) of buffer \"out\", outside its nearest binding 1 [0, 320)"),
      MakeTwin(
          21, Catcher::kHazardCheck, "slots by another stride",
          [](bool faulty) { return CheckSlotsByStride(faulty ? 192 : kRowBytes); }, overlap),
      MakeTwin(
          21, Catcher::kBits, "slots packed by one stride and read by another",
          [](bool faulty) { return UnpackSlotsByStride(faulty ? 48 : kWords); }, "rows 1 2"),
      GoldenTwin(22, "a trace: an output that overlaps its input by a byte", "self",
                 "self 1:1 add_f32 -> 1:1 add_f32 x[32,33)"),
      MakeTwin(
          22, Catcher::kHazardCheck, "an output that overlaps its input by a byte, or touches it",
          [](bool faulty) {
            return CheckOneBuffer(faulty ? ByteRange{63, 127} : ByteRange{64, 128});
          },
          "self 1:1 add -> 1:1 add x[63,64)"),
      MakeTwin(
          22, Catcher::kHazardCheck, "an output that is its input, or a byte further",
          [](bool faulty) {
            return CheckOneBuffer(faulty ? ByteRange{1, 65} : ByteRange{0, 64});
          },
          "self 1:1 add -> 1:1 add x[1,64)"),
      MakeTwin(23, Catcher::kHazardCheck, "a whole buffer bound, read to its end or not",
               CheckWideBinding, "raw 1:1 add -> 1:2 mul table[128,192)",
               "possible raw 1:1 add -> 1:2 mul table[128,192)"),
      CheckedTwin(
          24, "a view of one row for a kernel that writes four",
          [](bool faulty) { return CopyFourRowsInto(faulty ? 1 : 4); },
          "writes bytes [256, 1024) of buffer \"out\", outside its nearest binding 1 [0, 256)"),
      MakeTwin(
          24, Catcher::kBits, "one row copied of four",
          [](bool faulty) { return TextOf(CopyRowsOfFour(faulty ? 1 : 4)); }, "rows 1 2 3"),
  };
}

}  // namespace assay::faults
