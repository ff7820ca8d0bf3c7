// Speed of the kernels on the cpu device. Matrix by vector is bound by memory, so its weights go
// round a set larger than the caches and the figure is bytes of weights a second; matrix by matrix
// is bound by arithmetic.
//
//   kernels_bench --benchmark_filter=MatVec
//
// ASSAY_BENCH_SMOKE shrinks everything to what a test run needs.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "assay/gpu.h"
#include "assay/kernels.h"

#include "gpu/backend.h"

namespace assay::kernels {
namespace {

bool Smoke() { return std::getenv("ASSAY_BENCH_SMOKE") != nullptr; }

struct Setup {
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<gpu::Session> session;

  explicit Setup(int threads)
      : device(gpu::Device::Create(gpu::MakeBackend("cpu", {.threads = threads}).value()).value()),
        ops(Ops::Create(device.get()).value()),
        session(device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value()) {}

  // Bytes that are small, finite numbers in every format.
  gpu::BufferView Bytes(uint64_t size) {
    gpu::BufferDesc desc;
    desc.size_bytes = size;
    desc.label = "bench";
    const gpu::Buffer buffer = device->CreateBuffer(desc).value();
    const auto mapping = device->Map(buffer.All(), Access::kWrite).value();
    uint32_t state = 1;
    for (std::byte& byte : mapping.bytes()) {
      state = state * 1664525 + 1013904223;
      byte = static_cast<std::byte>(state >> 27 & 31u);
    }
    return buffer.All();
  }
  Matrix F32(uint32_t rows, uint32_t cols) {
    return {Bytes(uint64_t{rows} * cols * 4), DType::kF32, rows, cols};
  }
  Matrix Weights(DType type, uint32_t rows, uint32_t cols) {
    return {Bytes(RowBytes(type, cols).value() * rows), type, rows, cols};
  }
  Activations Input(DType type, uint32_t rows, uint32_t cols) {
    const ActivationFormat format = ops->InputFormat(type);
    return {Bytes(ActivationBytes(format, rows, cols)), format, rows, cols};
  }
  void Finish(benchmark::State& state, const Status& encoded) {
    if (!encoded || !session->Commit() || !session->Wait()) state.SkipWithError("a call failed");
  }
};

// Args: type, rows, cols, threads.
void MatVec(benchmark::State& state) {
  const auto type = static_cast<DType>(state.range(0));
  const auto rows = static_cast<uint32_t>(state.range(1));
  const auto cols = static_cast<uint32_t>(state.range(2));
  Setup s(static_cast<int>(state.range(3)));
  const uint64_t bytes = RowBytes(type, cols).value() * rows;
  const uint64_t set_bytes = Smoke() ? bytes : uint64_t{320} << 20;
  const uint64_t count = std::max<uint64_t>(1, set_bytes / bytes);
  // One allocation, so that huge pages hold it whatever the size of a matrix.
  const gpu::BufferView set = s.Bytes(bytes * count);
  std::vector<Matrix> weights;
  for (uint64_t i = 0; i < count; ++i) {
    weights.push_back({set.Slice(i * bytes, bytes).value(), type, rows, cols});
  }
  const Activations x = s.Input(type, 1, cols);
  const Matrix out = s.F32(1, rows);
  for (auto _ : state) {
    Status status;
    for (const Matrix& matrix : weights) {
      if (status) status = s.ops->MatMul(*s.session, matrix, x, out);
      if (status) status = s.session->Barrier();
    }
    s.Finish(state, status);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes * count));
  state.SetLabel(std::string(DTypeName(type)));
}

// Args: type, rows, cols, tokens, threads.
void MatMat(benchmark::State& state) {
  const auto type = static_cast<DType>(state.range(0));
  const auto rows = static_cast<uint32_t>(state.range(1));
  const auto cols = static_cast<uint32_t>(state.range(2));
  const auto tokens = static_cast<uint32_t>(state.range(3));
  Setup s(static_cast<int>(state.range(4)));
  const Matrix weights = s.Weights(type, rows, cols);
  const Activations x = s.Input(type, tokens, cols);
  const Matrix out = s.F32(tokens, rows);
  for (auto _ : state) s.Finish(state, s.ops->MatMul(*s.session, weights, x, out));
  state.counters["flop"] =
      benchmark::Counter(2.0 * rows * cols * tokens * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
  state.SetLabel(std::string(DTypeName(type)));
}

// Args: type, experts, used, tokens, threads; experts of 768 x 2048.
void ByExpert(benchmark::State& state) {
  const auto type = static_cast<DType>(state.range(0));
  const auto experts = static_cast<uint32_t>(state.range(1));
  const auto used = static_cast<uint32_t>(state.range(2));
  const auto tokens = static_cast<uint32_t>(state.range(3));
  Setup s(static_cast<int>(state.range(4)));
  const uint32_t rows = Smoke() ? 32 : 768;
  const uint32_t cols = Smoke() ? 64 : 2048;
  const Matrix weights = s.Weights(type, rows * experts, cols);
  const Activations x = s.Input(type, tokens, cols);
  const Matrix out = s.F32(tokens * used, rows);
  std::vector<int32_t> ids(size_t{tokens} * used);
  const gpu::BufferView id_view = s.Bytes(ids.size() * sizeof(int32_t));
  uint32_t next = 1;
  uint64_t bytes = 0;
  for (auto _ : state) {
    for (int32_t& id : ids) {
      next = next * 1664525 + 1013904223;
      id = static_cast<int32_t>((next >> 8) % experts);
    }
    std::vector<int32_t> distinct = ids;
    std::sort(distinct.begin(), distinct.end());
    const auto end = std::unique(distinct.begin(), distinct.end());
    bytes += static_cast<uint64_t>(end - distinct.begin()) * rows * RowBytes(type, cols).value();
    const auto* raw = reinterpret_cast<const std::byte*>(ids.data());
    Status status = s.device->Write(id_view, {raw, ids.size() * sizeof(int32_t)});
    if (status) status = s.ops->MatMulByExpert(*s.session, weights, experts, id_view, x, out);
    s.Finish(state, status);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["flop"] = benchmark::Counter(
      2.0 * rows * cols * tokens * used * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
  state.SetLabel(std::string(DTypeName(type)));
}

// Args: cache type, tokens, first position, threads; 16 query heads over 8 of 128.
void AttentionAt(benchmark::State& state) {
  const auto type = static_cast<DType>(state.range(0));
  const auto tokens = static_cast<uint32_t>(state.range(1));
  const auto position = static_cast<uint32_t>(state.range(2));
  Setup s(static_cast<int>(state.range(3)));
  constexpr uint32_t kHeadDim = 128;
  const uint32_t context = position + tokens;
  // As many layers as leave the caches cold.
  const size_t layers = Smoke() ? 1 : 28;
  std::vector<Matrix> k;
  std::vector<Matrix> v;
  for (size_t i = 0; i < layers; ++i) {
    k.push_back(s.Weights(type, context, 8 * kHeadDim));
    v.push_back(s.Weights(type, context, 8 * kHeadDim));
  }
  const Matrix q = s.F32(tokens, 16 * kHeadDim);
  const Activations out = {s.Bytes(ActivationBytes(ActivationFormat::kQ8, tokens, q.cols)),
                           ActivationFormat::kQ8, tokens, q.cols};
  for (auto _ : state) {
    Status status;
    for (size_t i = 0; i < layers; ++i) {
      if (status) {
        status = s.ops->Attention(*s.session, q, k[i], v[i], kHeadDim, position, 0.1f, out);
      }
      if (status) status = s.session->Barrier();
    }
    s.Finish(state, status);
  }
  state.SetBytesProcessed(
      static_cast<int64_t>(state.iterations() * layers * 2 * k[0].view.size_bytes()));
  state.SetLabel(std::string(DTypeName(type)));
}

// The small ops of a decode step, one each, without the matrix products.
void SmallOps(benchmark::State& state) {
  Setup s(static_cast<int>(state.range(0)));
  const Matrix x = s.F32(1, 1024);
  const Matrix weight = s.F32(1, 1024);
  const Matrix q = s.F32(1, 2048);
  const Matrix gate = s.F32(1, 3072);
  const Activations norm = s.Input(DType::kQ8_0, 1, 1024);
  const Activations hidden = s.Input(DType::kQ8_0, 1, 3072);
  for (auto _ : state) {
    Status status = s.ops->RmsNorm(*s.session, x, weight.view, 1e-6f, norm);
    if (status) status = s.session->Barrier();
    if (status) {
      status = s.ops->HeadNormRope(*s.session, q, 128, weight.view.Slice(0, 512).value(), 1e-6f,
                                   600, 1e6f);
    }
    if (status) status = s.session->Barrier();
    if (status) status = s.ops->SiluMul(*s.session, gate, gate, hidden);
    s.Finish(state, status);
  }
}

void Types(benchmark::internal::Benchmark* b, std::vector<std::vector<int64_t>> rest) {
  std::vector<std::vector<int64_t>> args = {{static_cast<int64_t>(DType::kQ8_0),
                                             static_cast<int64_t>(DType::kQ4_0),
                                             static_cast<int64_t>(DType::kF16)}};
  args.insert(args.end(), rest.begin(), rest.end());
  b->ArgsProduct(args)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK(MatVec)->Apply([](auto* b) {
  if (Smoke()) return Types(b, {{48}, {64}, {1, 2}});
  for (const auto& [rows, cols] :
       {std::pair{1024, 1024}, {3072, 1024}, {1024, 3072}, {32000, 1024}}) {
    Types(b, {{rows}, {cols}, {1, 2}});
  }
});
BENCHMARK(MatMat)->Apply([](auto* b) {
  if (Smoke()) return Types(b, {{48}, {64}, {5}, {1}});
  Types(b, {{3072}, {1024}, {2, 8, 128}, {1, 2}});
  Types(b, {{1024}, {3072}, {128}, {1, 2}});
});
BENCHMARK(ByExpert)->Apply([](auto* b) {
  if (Smoke()) return Types(b, {{8}, {2}, {1, 4}, {1}});
  Types(b, {{64}, {8}, {1, 4, 128}, {1, 2}});
});
BENCHMARK(AttentionAt)
    ->ArgsProduct({{static_cast<int64_t>(DType::kF32), static_cast<int64_t>(DType::kF16)},
                   {1, 128},
                   {0, 600},
                   {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(SmallOps)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace assay::kernels
