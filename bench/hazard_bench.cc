// What a check costs, in dispatches a second, at 10^5 and 10^6 dispatches, so that a cost that
// grows faster than the trace shows. ASSAY_BENCH_DISPATCHES=10000000 adds a size to the benchmarks
// of the checker alone.
//
// The program is a decode of a 28-layer model: each token is one command buffer of 336 dispatches
// whose weights stay the same and whose cache ranges grow, and a wait.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "assay/hazard.h"
#include "assay/trace.h"

#include "hazard/mutator.h"

namespace assay::hazard {
namespace {

using trace::BufferAccess;
using trace::BufferId;
using trace::KernelId;

constexpr uint64_t kLayers = 28;
constexpr uint64_t kDispatchesALayer = 12;
constexpr uint64_t kDispatchesAToken = kLayers * kDispatchesALayer;
constexpr uint64_t kWeightBytes = 4 << 20;
constexpr uint64_t kRowBytes = 2048;
constexpr uint64_t kContext = 4096;
constexpr uint64_t kActivations = 8;
constexpr uint32_t kKernels = 10;

// Where barriers stand. Each dispatch reads what the one before wrote.
enum class Barriers : uint8_t { kAll, kNone };

class DecodeProgram {
 public:
  explicit DecodeProgram(Barriers barriers) {
    for (uint64_t i = 0; i < 8 * kLayers + kActivations; ++i) {
      const bool is_cache = i < 8 * kLayers && i % 8 == 7;
      const bool is_weight = i < 8 * kLayers && !is_cache;
      trace::BufferEvent buffer;
      buffer.buffer = BufferId(i);
      buffer.size_bytes = is_cache ? kRowBytes * kContext : kWeightBytes;
      if (is_weight) buffer.digest = "00ff";
      made_.push_back(buffer);
    }
    for (uint32_t i = 0; i < kKernels; ++i) {
      trace::KernelEvent kernel;
      kernel.kernel = KernelId(i);
      kernel.name = "kernel_" + std::to_string(i);
      kernel.digest = "5c1f";
      made_.push_back(kernel);
    }
    token_.push_back(trace::BeginEvent{});
    for (uint64_t i = 0; i < kDispatchesAToken; ++i) {
      if (i > 0 && barriers == Barriers::kAll) token_.push_back(trace::BarrierEvent{});
      token_.push_back(MakeDispatch(i));
    }
    token_.push_back(trace::CommitEvent{});
    token_.push_back(trace::WaitEvent{});
    SetPosition(0);
  }

  const std::vector<trace::Event>& made() const { return made_; }
  const std::vector<trace::Event>& token() const { return token_; }

  // Moves the cache ranges to those of the token at `position`.
  void SetPosition(uint64_t position) {
    const uint64_t row = position % kContext * kRowBytes;
    for (trace::Event& event : token_) {
      auto* const dispatch = std::get_if<trace::DispatchEvent>(&event);
      if (dispatch == nullptr) continue;
      for (BufferAccess& access : dispatch->accesses) {
        if (access.buffer.value() >= 8 * kLayers || access.buffer.value() % 8 != 7) continue;
        access.range = access.access == Access::kWrite ? ByteRange{row, row + kRowBytes}
                                                       : ByteRange{0, row + kRowBytes};
      }
    }
  }

 private:
  static trace::DispatchEvent MakeDispatch(uint64_t i) {
    const uint64_t layer = i / kDispatchesALayer;
    const uint64_t op = i % kDispatchesALayer;
    const auto activation = [](uint64_t n) { return BufferId(8 * kLayers + n % kActivations); };
    trace::DispatchEvent dispatch;
    dispatch.kernel = KernelId(static_cast<uint32_t>(op % kKernels));
    dispatch.grid = {64, 1, 1};
    dispatch.args.resize(16);
    dispatch.accesses = {
        {Access::kRead, BufferId(8 * layer + op % 7), {0, kWeightBytes}, true},
        {Access::kRead, activation(i), {0, 4096}, true},
        {Access::kWrite, activation(i + 1), {0, 4096}, true},
    };
    const BufferId cache(8 * layer + 7);
    if (op == 4) dispatch.accesses.push_back({Access::kWrite, cache, {}, true});
    if (op == 5) dispatch.accesses.push_back({Access::kRead, cache, {}, true});
    return dispatch;
  }

  std::vector<trace::Event> made_;
  std::vector<trace::Event> token_;
};

// Gives `judge` the program, events in memory, and returns its report.
template <typename Judge>
auto FeedProgram(benchmark::State& state, DecodeProgram& program, Judge& judge) {
  const auto dispatches = static_cast<uint64_t>(state.range(0));
  uint64_t line = 1;
  const auto add = [&](const std::vector<trace::Event>& events) {
    for (const trace::Event& event : events) {
      const Status status = judge.Add(event, ++line);
      if (!status) state.SkipWithError(status.error().ToString().c_str());
    }
  };
  add(program.made());
  for (uint64_t done = 0; done < dispatches; done += kDispatchesAToken) {
    program.SetPosition(done / kDispatchesAToken);
    add(program.token());
  }
  return judge.Finish();
}

// The checker alone.
void CheckEvents(benchmark::State& state, Barriers barriers) {
  DecodeProgram program(barriers);
  uint64_t checked = 0;
  for (auto _ : state) {
    Options options;
    options.max_listed = 1000;
    Checker checker(options);
    const Report report = FeedProgram(state, program, checker);
    if ((report.hazards() == 0) != (barriers == Barriers::kAll)) {
      state.SkipWithError("the program is not what it should be");
    }
    checked += report.dispatches;
  }
  state.SetItemsProcessed(static_cast<int64_t>(checked));
}

void CheckCleanEvents(benchmark::State& state) { CheckEvents(state, Barriers::kAll); }
void CheckRacyEvents(benchmark::State& state) { CheckEvents(state, Barriers::kNone); }

// The mutator alone, in mutants a second.
void MutateEvents(benchmark::State& state) {
  DecodeProgram program(Barriers::kAll);
  uint64_t mutants = 0;
  for (auto _ : state) {
    Mutator mutator;
    const MutationReport report = FeedProgram(state, program, mutator);
    if (report.survived() != 0) state.SkipWithError("a barrier survived");
    mutants += report.mutants.size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(mutants));
}

// A whole trace: reading it, its digest, the check.
void CheckText(benchmark::State& state) {
  const auto dispatches = static_cast<uint64_t>(state.range(0));
  DecodeProgram program(Barriers::kAll);
  std::string text;
  {
    auto writer = trace::TraceWriter::CreateInMemory(&text, {});
    if (!writer) {
      state.SkipWithError(writer.error().ToString().c_str());
      return;
    }
    for (const trace::Event& event : program.made()) {
      if (const auto* buffer = std::get_if<trace::BufferEvent>(&event)) {
        (*writer)->BufferMade(buffer->buffer.value(),
                              {.size_bytes = buffer->size_bytes, .digest = buffer->digest});
      } else if (const auto* kernel = std::get_if<trace::KernelEvent>(&event)) {
        (*writer)->KernelMade(kernel->kernel.value(),
                              {.name = kernel->name, .digest = kernel->digest});
      }
    }
    for (uint64_t done = 0; done < dispatches; done += kDispatchesAToken) {
      program.SetPosition(done / kDispatchesAToken);
      auto commands = (*writer)->BeginCommandBuffer();
      for (const trace::Event& event : program.token()) {
        if (std::holds_alternative<trace::BarrierEvent>(event)) commands->Barrier();
        const auto* const dispatch = std::get_if<trace::DispatchEvent>(&event);
        if (dispatch == nullptr) continue;
        std::vector<trace::DispatchRecord::Binding> bindings;
        for (const BufferAccess& access : dispatch->accesses) {
          bindings.push_back({access.buffer.value(), access.range, access.access, access.exact});
        }
        commands->Dispatch({.kernel_key = dispatch->kernel.value(),
                            .grid = dispatch->grid,
                            .args = dispatch->args,
                            .bindings = bindings});
      }
      (*writer)->Commit(*commands);
      (*writer)->Wait();
    }
    const Status closed = (*writer)->Close();
    if (!closed) state.SkipWithError(closed.error().ToString().c_str());
  }
  uint64_t checked = 0;
  for (auto _ : state) {
    const Result<Report> report = CheckTraceText(text, "bench", {});
    if (!report || report->hazards() != 0) {
      state.SkipWithError("the trace is not clean");
      return;
    }
    checked += report->dispatches;
  }
  state.SetItemsProcessed(static_cast<int64_t>(checked));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMillisecond);
  if (std::getenv("ASSAY_BENCH_SMOKE") != nullptr) {
    bench->Arg(1000);
    return;
  }
  bench->Arg(100'000)->Arg(1'000'000);
}

void SizesOfTheChecker(benchmark::internal::Benchmark* bench) {
  Sizes(bench);
  if (const char* more = std::getenv("ASSAY_BENCH_DISPATCHES")) {
    bench->Arg(std::strtoll(more, nullptr, 10));
  }
}

BENCHMARK(CheckCleanEvents)->Apply(SizesOfTheChecker);
BENCHMARK(CheckRacyEvents)->Apply(SizesOfTheChecker);
BENCHMARK(MutateEvents)->Apply(Sizes);
BENCHMARK(CheckText)->Apply(Sizes);

}  // namespace
}  // namespace assay::hazard
