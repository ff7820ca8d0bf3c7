// The worker pool under a decode step's load, alone and beside a neighbour process that keeps one
// core busy: the speed that is left is the counter `kept`.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "gpu/cpu/cpu_kernel.h"

namespace assay::gpu {
namespace {

// Reads its share of the bound bytes, as a matrix product with one row of input does.
void ReadGroup(const CpuKernelArgs& args, Extent3 group) {
  const uint64_t share = args.binding_bytes[0] / args.grid.x;
  const std::byte* const first = args.bindings[0] + share * group.x;
  uint64_t sum = 0;
  for (uint64_t i = 0; i + 8 <= share; i += 8) {
    uint64_t word;
    std::memcpy(&word, first + i, 8);
    sum += word;
  }
  std::memcpy(args.bindings[1] + sizeof(sum) * group.x, &sum, sizeof(sum));
}

constexpr CpuKernel kReadCode = {[]() -> CpuWorkgroupFn { return ReadGroup; },
                                 []() -> std::string_view { return "bench"; }};
constexpr std::array kReadCodes = {KernelCode{kCpuCodeFormat, &kReadCode, sizeof(kReadCode)}};
constexpr KernelDesc kRead = {"read", {1, 1, 1}, 2, 0, "0", kReadCodes};

// A process that spins until it is told to end, or until this one ends.
class BusyNeighbour {
 public:
  BusyNeighbour() : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::atomic<uint64_t> spins{0};;) spins.fetch_add(1, std::memory_order_relaxed);
  }
  BusyNeighbour(const BusyNeighbour&) = delete;
  BusyNeighbour& operator=(const BusyNeighbour&) = delete;
  ~BusyNeighbour() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_;
};

using Seconds = std::chrono::duration<double>;

// Steps of 300 groups, in turn small, middling and large as in a transformer's layer.
class DecodeSteps {
 public:
  explicit DecodeSteps(int threads) {
    device_ = Device::Create(MakeBackend("cpu", {.threads = threads}).value()).value();
    (void)device_->kernels().Add(kRead);
    kernel_ = device_->kernels().Get("read").value();
    session_ = device_->CreateSession({.barriers = BarrierMode::kSerial}).value();
    for (const uint64_t kib : {64, 256, 1024}) {
      weights_.push_back(
          device_->CreateBuffer({.size_bytes = kib << 10, .label = "weights", .digest = {}})
              .value()
              .All());
    }
    out_ =
        device_->CreateBuffer({.size_bytes = 1 << 12, .label = "out", .digest = {}}).value().All();
  }

  bool Step() {
    for (int i = 0; i < 300; ++i) {
      const std::array bindings = {Binding{weights_[static_cast<size_t>(i % 3)], Access::kRead},
                                   Binding{out_, Access::kWrite}};
      if (!session_->Dispatch({kernel_, bindings, {}, {64, 1, 1}, 0})) return false;
    }
    return session_->Commit() && session_->Wait();
  }

  // The time of `steps` steps.
  double Measure(int steps) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) {
      if (!Step()) return -1;
    }
    return Seconds(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  KernelId kernel_;
  std::vector<BufferView> weights_;
  BufferView out_;
};

void StepsBesideNeighbour(benchmark::State& state) {
  DecodeSteps decode(static_cast<int>(state.range(0)));
  const int steps = getenv("ASSAY_BENCH_SMOKE") != nullptr ? 1 : 100;
  (void)decode.Measure(steps);
  double alone = 0;
  double beside = 0;
  for (auto _ : state) {
    alone += decode.Measure(steps);
    const BusyNeighbour neighbour;
    beside += decode.Measure(steps);
  }
  const double total = static_cast<double>(steps) * static_cast<double>(state.iterations());
  state.counters["alone_us"] = alone / total * 1e6;
  state.counters["beside_us"] = beside / total * 1e6;
  state.counters["kept"] = alone / beside;
}
BENCHMARK(StepsBesideNeighbour)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace assay::gpu
