// Kinds 29 to 33: names and files of traces that are written by several threads.
#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/compare.h"
#include "assay/gpu.h"
#include "assay/trace.h"

#include "base/hash.h"
#include "gpu/backend.h"
#include "support/load_fixture.h"
#include "support/trace_text.h"
#include "tests/faults/checking.h"
#include "tests/faults/corpus.h"
#include "tests/faults/faulty_kernels.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

using testing::LoadEvent;
using trace::TraceWriter;

// Writes a trace in memory; a failure is its text.
std::string WriteTrace(const trace::WriterOptions& options,
                       const std::function<void(TraceWriter&)>& write) {
  std::string text;
  const auto writer = TraceWriter::CreateInMemory(&text, options);
  if (!writer) return writer.error().ToString();
  write(**writer);
  const Status closed = (*writer)->Close();
  return closed ? text : closed.error().ToString();
}

// --- Kind 29. Version 1 names buffers in the order of their making, version 2 by job and place.

std::string LoadFixture(
    int version, const std::function<void(TraceWriter&, std::function<void(LoadEvent)>)>& load) {
  return WriteTrace({.version = version}, [&](TraceWriter& writer) {
    load(writer, [&writer](LoadEvent event) {
      writer.BufferMade(testing::AddressOf(event),
                        {.size_bytes = 16 * (1 + event.job), .kind = BufferKind::kWeight});
    });
  });
}

std::string OrdersThatDiffer(int version) {
  const auto in_order = [&](std::span<const LoadEvent> order) {
    return LoadFixture(version, [&](TraceWriter& writer, const auto& make) {
      testing::RunLoadInOrder(writer.load_observer(), order, make);
    });
  };
  const auto on_workers = [&](int workers) {
    return LoadFixture(version, [&](TraceWriter& writer, const auto& make) {
      (void)testing::RunLoadOnWorkers(writer.load_observer(), workers, make);
    });
  };
  const std::string forward = in_order(testing::ForwardOrder());
  std::string differing;
  if (in_order(testing::ReversedOrder()) != forward) differing += " reversed";
  if (in_order(testing::kMixedOrder) != forward) differing += " mixed";
  for (const int workers : {1, 2, 4, 8}) {
    if (on_workers(workers) != forward) differing += fmt::format(" workers:{}", workers);
  }
  return differing;
}

// --- Kind 30

// Two threads make one pipeline each, the one of `first` before the other; both are used in one
// order. `digest_of` says what a pipeline is from its name and from how many were made before.
std::string MakePipelines(
    std::string_view first, std::string_view second,
    const std::function<std::string(std::string_view name, int made)>& digest_of) {
  return WriteTrace({}, [&](TraceWriter& writer) {
    constexpr uint64_t kBuffer = 7;
    writer.BufferMade(kBuffer, {.size_bytes = 16});
    int made = 0;
    for (const std::string_view name : {first, second}) {
      const std::string digest = digest_of(name, made++);
      std::jthread([&] {
        writer.KernelMade(name == "add" ? 1 : 2, {.name = name, .digest = digest});
      }).join();
    }
    auto commands = writer.BeginCommandBuffer();
    const std::vector<trace::DispatchRecord::Binding> bindings = {
        {kBuffer, {0, 16}, Access::kWrite}};
    commands->Dispatch({.kernel_key = 1, .bindings = bindings});
    commands->Barrier();
    commands->Dispatch({.kernel_key = 2, .bindings = bindings});
    writer.Commit(*commands);
  });
}

std::string ComparePipelines(bool by_order) {
  const auto digest_of = [&](std::string_view name, int made) {
    return by_order ? std::to_string(made) : HexDigest(name);
  };
  const auto report = compare::CompareTraceTexts(MakePipelines("add", "mul", digest_of),
                                                 MakePipelines("mul", "add", digest_of));
  if (report.verdict == compare::Verdict::kIdentical) return "";
  std::string said(compare::VerdictName(report.verdict));
  for (const compare::Difference& difference : report.differences) {
    said += fmt::format("; {} {} {}", difference.field, difference.value_a, difference.value_b);
  }
  return said + report.reason;
}

// --- Kind 31

std::string CheckHalves(bool transform_too_early) {
  constexpr std::string_view kTransform =
      "begin\ndispatch k0 grid=1,1,1 r#0[0,64) w#1[0,64)\ncommit\n";
  constexpr std::string_view kSecondHalf = "write #0[32,64)\n";
  return CheckLines(
      fmt::format("buffer #0 size=64 kind=weight label=\"tensor\"\n"
                  "buffer #1 size=64 kind=weight label=\"packed\"\n"
                  "write #0[0,32)\n"
                  "kernel k0 name=pack digest=0 workgroup=1,1,1\n"
                  "{}{}wait\n",
                  transform_too_early ? kTransform : kSecondHalf,
                  transform_too_early ? kSecondHalf : kTransform));
}

// Two jobs of a load fill a half each; the tensor is packed when both have ended, or when the
// first one has.
Status PackHalves(bool too_early) {
  constexpr uint64_t kHalf = 128;
  ASSAY_ASSIGN_OR_RETURN(auto backend, gpu::MakeBackend("cpu", {.threads = 1}));
  ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
  ASSAY_ASSIGN_OR_RETURN(const auto session, device->CreateSession());
  const auto make = [&](const char* label) {
    return device->CreateBuffer({.size_bytes = 2 * kHalf, .label = label, .digest = {}});
  };
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer tensor, make("tensor"));
  ASSAY_ASSIGN_OR_RETURN(const gpu::Buffer packed, make("packed"));
  const auto pack = [&]() -> Status {
    ASSAY_TRY(
        DispatchCopyRows(*device, *session, {.width = 2 * kHalf / 4}, tensor.All(), packed.All()));
    return session->Commit();
  };
  const auto fill = [&](size_t job) -> Status {
    ASSAY_ASSIGN_OR_RETURN(const auto half, tensor.View(job * kHalf, kHalf));
    ASSAY_TRY(device->Write(half, std::vector<std::byte>(kHalf)));
    return too_early && job == 0 ? pack() : Status();
  };
  ASSAY_TRY(InOrder(2, 1, nullptr, fill));
  if (!too_early) ASSAY_TRY(pack());
  return session->Wait();
}

// --- Kind 32

std::vector<std::string> LinesOfARecorder(uint64_t buffers) {
  const std::string text = WriteTrace({}, [&](TraceWriter& writer) {
    for (uint64_t i = 0; i < buffers; ++i) writer.BufferMade(i, {.size_bytes = 16 * (i + 1)});
  });
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

std::string ReadBack(std::span<const std::string> lines, std::string_view part) {
  const auto read = testing::ReadAll(fmt::format("{}", fmt::join(lines, "")));
  return Describe(read ? Status() : Status(Fail(read.error())), part);
}

// The lines of two recorders in one file, each one's own in their order.
std::string ReadInterleaved(int round) {
  std::mt19937_64 random(static_cast<uint64_t>(round));
  const auto first = LinesOfARecorder(5);
  const auto second = LinesOfARecorder(8);
  std::vector<std::string> file;
  size_t a = 0;
  size_t b = 0;
  size_t torn_line = 0;
  while (a < first.size() || b < second.size()) {
    const bool take_first = a == 0 || b == second.size() || (a < first.size() && random() % 2 == 0);
    file.push_back(take_first ? first[a++] : second[b++]);
    if (b == 1 && torn_line == 0) torn_line = file.size();
  }
  const std::string part =
      fmt::format("line {}: A second trace begins here: the file is torn", torn_line);
  const std::string said = ReadBack(file, part);
  return said == "format test: " + part ? "torn where the second recorder begins" : said;
}

std::string ReadApart() {
  return ReadBack(LinesOfARecorder(5), "") + ReadBack(LinesOfARecorder(8), "");
}

// --- Kind 33

// Names after a load of four jobs whose second one fails, in the order in which they ran.
std::string FailingLoad(int version, const std::vector<size_t>& jobs) {
  return WriteTrace({.version = version}, [&](TraceWriter& writer) {
    LoadObserver& observer = *writer.load_observer();
    const uint64_t load = observer.OnLoadBegin(4);
    for (const size_t job : jobs) {
      observer.OnJobBegin(load, job);
      writer.BufferMade(10 + job, {.size_bytes = 16});
      observer.OnJobEnd(load, job, job != 1);
    }
    observer.OnLoadEnd(load);
    writer.BufferMade(20, {.size_bytes = 64});
  });
}

// The line of the first buffer behind the load.
std::string BufferBehindTheLoad(const std::string& text) {
  const size_t at = text.find("size=64");
  const size_t begin = at == std::string::npos ? at : text.rfind('\n', at);
  return begin == std::string::npos ? text : text.substr(begin + 1, at - begin - 2);
}

std::string NamesAfterAFailure(int version) {
  const std::string early = BufferBehindTheLoad(FailingLoad(version, {0, 1}));
  const std::string late = BufferBehindTheLoad(FailingLoad(version, {3, 2, 1, 0}));
  return early == late ? "" : early + " or " + late;
}

}  // namespace

std::vector<Twin> LoadingTwins() {
  using enum Catcher;
  const auto version = [](bool faulty) {
    return faulty ? trace::kCreationOrderVersion : trace::kCurrentVersion;
  };
  return {
      MakeTwin(
          29, kTrace, "buffers of a parallel load numbered as they are made",
          [=](bool faulty) { return OrdersThatDiffer(version(faulty)); },
          " reversed mixed workers:2 workers:4 workers:8"),
      MakeTwin(30, kTrace, "a pipeline known by its place in the cache", ComparePipelines,
               "different; digest 0 1; digest 1 0"),
      MakeTwin(31, kHazardCheck, "a trace: packed before the second half is there", CheckHalves,
               "host-write 1:1 pack -> host tensor[32,64); note never-written 1:1 pack "
               "tensor[32,64)"),
      ErrorTwin(31, kRuntime, "a load: packed when the first job has ended", PackHalves,
                "command-buffer tensor", "write bytes [128, 256)"),
      {.kind = 32,
       .catcher = kTraceReader,
       .name = "two recorders in one file",
       .racy = ReadInterleaved,
       .clean = [](int) { return ReadApart(); },
       .finding = "torn where the second recorder begins"},
      MakeTwin(
          33, kTrace, "numbers used up by the jobs of a load that failed",
          [=](bool faulty) { return NamesAfterAFailure(version(faulty)); },
          "buffer #2 or buffer #4"),
  };
}

}  // namespace assay::faults
