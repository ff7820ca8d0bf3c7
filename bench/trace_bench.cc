// What a trace costs: a dispatch written, and a megabyte read. The program is a decode of a
// 28-layer model: each token is one command buffer of ~340 dispatches whose weights stay the same
// and whose constants and cache ranges move.
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "assay/trace.h"

#include "trace/sink.h"

namespace assay::trace {
namespace {

constexpr size_t kLayers = 28;
constexpr size_t kDispatchesALayer = 12;
constexpr size_t kDispatchesAToken = kLayers * kDispatchesALayer;
constexpr size_t kKernels = 10;
constexpr uint64_t kKeyStep = 0x1c0;
// A file of about 20 MB: a longer one would measure how the system throttles its disk.
constexpr int kTokens = 512;

// The buffers of the program: seven weights and a cache a layer, and a handful of activations.
class DecodeProgram {
 public:
  explicit DecodeProgram(TraceWriter* writer) : writer_(writer) {
    for (size_t i = 0; i < kLayers * 8 + 8; ++i) {
      writer_->BufferMade(Key(i), {.size_bytes = 4 << 20, .kind = BufferKind::kWeight});
    }
    for (size_t i = 0; i < kKernels; ++i) {
      const std::string name = "kernel_" + std::to_string(i);
      writer_->KernelMade(i, {.name = name, .digest = "5c1f", .workgroup = {64, 1, 1}});
    }
  }

  void Token(uint32_t position) {
    auto commands = writer_->BeginCommandBuffer();
    for (size_t i = 0; i < kDispatchesAToken; ++i) {
      const size_t layer = i / kDispatchesALayer;
      const size_t op = i % kDispatchesALayer;
      std::array<std::byte, 16> args{};
      std::memcpy(args.data(), &position, sizeof position);
      const uint64_t activation = kLayers * 8 + op % 8;
      // Attention, one dispatch of a layer, reads as much of the cache as is filled.
      const bool attention = op == 5;
      const uint64_t kv_end = attention ? uint64_t{position} * 2048 + 2048 : 4096;
      const std::array<DispatchRecord::Binding, 4> bindings = {{
          {Key(layer * 8 + op % 7), {0, 4 << 20}, Access::kRead},
          {Key(activation), {0, 4096}, Access::kRead},
          {Key(layer * 8 + 7), {0, kv_end}, Access::kRead},
          {Key(kLayers * 8 + (op + 1) % 8), {0, 4096}, Access::kWrite},
      }};
      commands->Dispatch({.kernel_key = op % kKernels,
                          .grid = {64, 1, 1},
                          .args = args,
                          .bindings = std::span(bindings).first(op % 3 == 0 ? 4 : 3)});
      if (op % 2 == 1) commands->Barrier();
    }
    writer_->Commit(*commands);
    writer_->Wait();
  }

 private:
  static uint64_t Key(size_t index) { return 0x7f0000000000 + index * kKeyStep; }

  TraceWriter* writer_;
};

std::string TracePath(const char* name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

// Takes bytes and keeps none.
class NoSink final : public Sink {
 public:
  Status Write(std::string_view bytes) override {
    benchmark::DoNotOptimize(bytes.data());
    return {};
  }
  Status Commit() override { return {}; }
};

void WriteTokens(benchmark::State& state, TraceWriter* writer) {
  DecodeProgram program(writer);
  uint32_t position = 0;
  for (auto _ : state) program.Token(position++);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kDispatchesAToken));
  state.counters["s/dispatch"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kDispatchesAToken),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// The processor's own share: format, look up and digest.
void WriteTokenToNothing(benchmark::State& state) {
  auto writer = TraceWriter::CreateOver(std::make_unique<NoSink>(), {}, size_t{1} << 20).value();
  WriteTokens(state, writer.get());
}
BENCHMARK(WriteTokenToNothing);

void WriteTokenToFile(benchmark::State& state) {
  auto writer = TraceWriter::Create(TracePath("trace_bench.trace"), {}).value();
  WriteTokens(state, writer.get());
}
BENCHMARK(WriteTokenToFile)->Iterations(kTokens)->Repetitions(5)->ReportAggregatesOnly();

void WriteTokenToZstd(benchmark::State& state) {
  auto writer = TraceWriter::Create(TracePath("trace_bench.trace.zst"), {}).value();
  WriteTokens(state, writer.get());
}
BENCHMARK(WriteTokenToZstd)->Iterations(kTokens)->Repetitions(5)->ReportAggregatesOnly();

// A whole trace, of one token when only a smoke test is wanted.
std::string WrittenTrace(const std::string& path) {
  auto writer = TraceWriter::Create(path, {}).value();
  DecodeProgram program(writer.get());
  const int tokens = std::getenv("ASSAY_BENCH_SMOKE") != nullptr ? 1 : kTokens;
  for (int i = 0; i < tokens; ++i) program.Token(static_cast<uint32_t>(i));
  if (!writer->Close()) std::abort();
  return path;
}

void ReadTrace(benchmark::State& state, const char* name) {
  const std::string path = WrittenTrace(TracePath(name));
  uint64_t bytes = 0;
  for (auto _ : state) {
    auto reader = TraceReader::Open(path).value();
    bytes = 0;
    for (;;) {
      const auto event = reader->Next();
      if (!event.has_value()) {
        state.SkipWithError(event.error().message().c_str());
        return;
      }
      if (!event->has_value()) break;
      bytes += reader->line().size() + 1;
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
  std::filesystem::remove(path);
}

void ReadPlain(benchmark::State& state) { ReadTrace(state, "trace_bench_read.trace"); }
BENCHMARK(ReadPlain)->Unit(benchmark::kMillisecond);

void ReadZstd(benchmark::State& state) { ReadTrace(state, "trace_bench_read.trace.zst"); }
BENCHMARK(ReadZstd)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::trace
