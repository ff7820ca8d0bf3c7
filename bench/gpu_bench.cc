// What encoding, group transitions and command buffers cost.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/cpu/cpu_kernel.h"

namespace assay::gpu {
namespace {

void EmptyGroup(const CpuKernelArgs&, Extent3) {}

constexpr CpuKernel kEmptyCode = {[]() -> CpuWorkgroupFn { return EmptyGroup; },
                                  []() -> std::string_view { return "bench"; }};
constexpr std::array kEmptyCodes = {KernelCode{kCpuCodeFormat, &kEmptyCode, sizeof(kEmptyCode)}};

// As many bindings and constants as a matrix product has.
constexpr KernelDesc kEmpty = {"empty", {1, 1, 1}, 3, 16, "0", kEmptyCodes};

struct Fixture {
  Fixture(const char* backend, BarrierMode mode, int threads, size_t buffers) {
    device = Device::Create(MakeBackend(backend, {.threads = threads}).value()).value();
    (void)device->kernels().Add(kEmpty);
    kernel = device->kernels().Get("empty").value();
    session = device->CreateSession({.barriers = mode}).value();
    for (size_t i = 0; i < buffers; ++i) {
      views.push_back(
          device->CreateBuffer({.size_bytes = 1 << 16, .label = std::to_string(i), .digest = {}})
              .value()
              .All());
    }
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> session;
  KernelId kernel;
  std::vector<BufferView> views;
};

// One decode step of a 28-layer model has about this many.
constexpr size_t kDispatches = 400;

// Encoding alone. Weights are bound once a step, activations by every dispatch.
void EncodeDispatch(benchmark::State& state, const char* backend, BarrierMode mode) {
  Fixture fixture(backend, mode, 1, kDispatches);
  std::vector<std::array<Binding, 3>> bindings;
  for (size_t i = 0; i < kDispatches; ++i) {
    const BufferView in = fixture.views[i % 2].Slice(0, 4096).value();
    const BufferView out = fixture.views[(i + 1) % 2].Slice(8192, 4096).value();
    bindings.push_back({Binding{fixture.views[i], Access::kRead}, Binding{in, Access::kRead},
                        Binding{out, Access::kWrite}});
  }
  const std::array<std::byte, 16> constants{};
  for (auto _ : state) {
    for (size_t i = 0; i < kDispatches; ++i) {
      const Status status =
          fixture.session->Dispatch({fixture.kernel, bindings[i], constants, {8, 1, 1}, 0});
      benchmark::DoNotOptimize(status.has_value());
    }
    fixture.session->Reset();
  }
  state.counters["per_dispatch"] =
      benchmark::Counter(static_cast<double>(kDispatches * state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(EncodeDispatch, cpu_manual, "cpu", BarrierMode::kManual);
BENCHMARK_CAPTURE(EncodeDispatch, cpu_automatic, "cpu", BarrierMode::kAutomatic);
BENCHMARK_CAPTURE(EncodeDispatch, null_automatic, "null", BarrierMode::kAutomatic);

// Hundreds of groups, each one dispatch of `workgroups` empty workgroups: the time from one group
// to the next.
void GroupTransition(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  const auto workgroups = static_cast<uint32_t>(state.range(1));
  Fixture fixture("cpu", BarrierMode::kSerial, threads, 3);
  const std::array bindings = {Binding{fixture.views[0], Access::kRead},
                               Binding{fixture.views[1], Access::kRead},
                               Binding{fixture.views[2], Access::kWrite}};
  const std::array<std::byte, 16> constants{};
  for (auto _ : state) {
    state.PauseTiming();
    for (size_t i = 0; i < kDispatches; ++i) {
      const Status status =
          fixture.session->Dispatch({fixture.kernel, bindings, constants, {workgroups, 1, 1}, 0});
      benchmark::DoNotOptimize(status.has_value());
    }
    state.ResumeTiming();
    if (!fixture.session->Commit() || !fixture.session->Wait()) state.SkipWithError("failed");
  }
  state.counters["per_group"] =
      benchmark::Counter(static_cast<double>(kDispatches * state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(GroupTransition)
    ->ArgNames({"threads", "workgroups"})
    ->Args({1, 2})
    ->Args({2, 1})
    ->Args({2, 2})
    ->Args({2, 64})
    ->UseRealTime();

// A command buffer of one dispatch, waited for: the least a step can cost.
void CommitAndWait(benchmark::State& state) {
  Fixture fixture("cpu", BarrierMode::kManual, static_cast<int>(state.range(0)), 3);
  const std::array bindings = {Binding{fixture.views[0], Access::kRead},
                               Binding{fixture.views[1], Access::kRead},
                               Binding{fixture.views[2], Access::kWrite}};
  const std::array<std::byte, 16> constants{};
  for (auto _ : state) {
    Session& session = *fixture.session;
    if (!session.Dispatch({fixture.kernel, bindings, constants, {1, 1, 1}, 0}) ||
        !session.Commit() || !session.Wait()) {
      state.SkipWithError("failed");
    }
  }
}
BENCHMARK(CommitAndWait)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace assay::gpu
