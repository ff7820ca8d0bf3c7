// What every operation touches, against what it declares.
#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/ops_cases.h"
#include "kernels/spy_backend.h"
#include "kernels/vulkan/spirv_table.h"
#include "tests/conformance/executing_backends.h"

namespace assay::kernels {
namespace {

using testing::AllOpCases;
using testing::OpCase;
using testing::Operands;
using testing::SeenDispatch;
using testing::SpyBackend;

using Contents = std::vector<std::vector<std::byte>>;

// A device with one thread whose dispatches are seen.
struct Bench {
  SpyBackend* spy = nullptr;
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<Ops> ops;

  explicit Bench(const std::string& name = "cpu", gpu::BackendOptions options = {}) {
    options.threads = 1;
    auto backend = std::make_unique<SpyBackend>(gpu::MakeBackend(name, options).value());
    spy = backend.get();
    device = gpu::Device::Create(std::move(backend)).value();
    ops = Ops::Create(device.get()).value();
  }

  Contents ReadAll(const Operands& operands) {
    Contents contents;
    for (const gpu::Buffer& buffer : operands.buffers()) {
      contents.emplace_back(buffer.size_bytes());
      EXPECT_TRUE(device->Read(buffer.All(), contents.back()).has_value());
    }
    return contents;
  }
  void WriteAll(const Operands& operands, const Contents& contents) {
    for (size_t i = 0; i < contents.size(); ++i) {
      EXPECT_TRUE(device->Write(operands.buffers()[i].All(), contents[i]).has_value());
    }
  }
};

// Bytes of each buffer that a binding of the wanted kind covers.
template <typename Wanted>
std::vector<std::vector<bool>> Covered(const SpyBackend& spy, const SeenDispatch& seen,
                                       const Contents& contents, const Wanted& wanted) {
  std::vector<std::vector<bool>> covered;
  for (size_t i = 0; i < contents.size(); ++i) {
    covered.emplace_back(contents[i].size(), false);
    for (const gpu::BackendBinding& binding : seen.bindings) {
      if (binding.buffer != spy.buffers()[i] || !wanted(binding)) continue;
      std::fill(covered[i].begin() + static_cast<ptrdiff_t>(binding.range.begin),
                covered[i].begin() + static_cast<ptrdiff_t>(binding.range.end), true);
    }
  }
  return covered;
}

class OpAccess : public ::testing::TestWithParam<OpCase> {};

class OpAccessOn : public ::testing::TestWithParam<std::tuple<std::string, OpCase>> {};

TEST_P(OpAccessOn, TouchesExactlyWhatItDeclares) {
  const auto& [backend, op] = GetParam();
  Bench bench(backend);
  auto session = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
  Operands operands(bench.device.get(), 77);

  const auto encoded = op.encode(*bench.ops, *session, operands);
  if (!encoded && encoded.error().code() == ErrorCode::kUnsupported) {
    // The form is one of those without a shader.
    ASSERT_EQ(backend, "vulkan") << encoded.error().ToString();
    ASSERT_THAT(op.name, ::testing::HasSubstr("_Q8"));
    return;
  }
  ASSERT_TRUE(encoded.has_value()) << encoded.error().ToString();
  ASSERT_EQ(bench.spy->seen().size(), 1u);
  const SeenDispatch seen = bench.spy->seen().front();
  const Contents before = bench.ReadAll(operands);
  const auto written =
      Covered(*bench.spy, seen, before, [](const auto& binding) { return Writes(binding.access); });
  const auto read =
      Covered(*bench.spy, seen, before, [](const auto& binding) { return Reads(binding.access); });
  ASSERT_TRUE(session->Commit().has_value());
  ASSERT_TRUE(session->Wait().has_value());
  const Contents after = bench.ReadAll(operands);

  for (size_t i = 0; i < before.size(); ++i) {
    for (size_t j = 0; j < before[i].size(); ++j) {
      if (written[i][j]) continue;
      ASSERT_EQ(after[i][j], before[i][j]) << "wrote byte " << j << " of operand " << i;
    }
  }

  // With other bytes in all places that it does not declare to read, it writes the same, and every
  // byte that it declares to write and not to read.
  for (const std::byte garbage : {std::byte{0x00}, std::byte{0x7F}}) {
    Contents poisoned = before;
    for (size_t i = 0; i < before.size(); ++i) {
      for (size_t j = 0; j < before[i].size(); ++j) {
        if (!read[i][j]) poisoned[i][j] = garbage;
      }
    }
    Operands again(bench.device.get(), 77);
    auto second = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
    ASSERT_TRUE(op.encode(*bench.ops, *second, again).has_value());
    bench.WriteAll(again, poisoned);
    ASSERT_TRUE(second->Commit().has_value());
    ASSERT_TRUE(second->Wait().has_value());
    const Contents result = bench.ReadAll(again);
    for (size_t i = 0; i < before.size(); ++i) {
      for (size_t j = 0; j < before[i].size(); ++j) {
        if (!written[i][j]) continue;
        ASSERT_EQ(result[i][j], after[i][j])
            << "byte " << j << " of operand " << i << " depends on undeclared bytes";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpAccessOn,
                         ::testing::Combine(::testing::ValuesIn(gpu::testing::PlainBackends()),
                                            ::testing::ValuesIn(AllOpCases())),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
                         });

// A checked device finds nothing to say of any operation, and gives its bits (E6).
TEST_P(OpAccess, E6_ACheckedDeviceFindsNothingAndGivesTheSameBits) {
  for (const uint64_t seed : {77, 78, 79, 80, 81}) {
    Contents plain;
    for (const bool checked : {false, true}) {
      auto device =
          gpu::Device::Create(gpu::MakeBackend("cpu", {.threads = 1}).value(), {.checked = checked})
              .value();
      auto ops = Ops::Create(device.get()).value();
      auto session = device->CreateSession().value();
      Operands operands(device.get(), seed);
      ASSERT_TRUE(GetParam().encode(*ops, *session, operands).has_value());
      ASSERT_TRUE(session->Commit().has_value());
      const Status found = session->Wait();
      ASSERT_TRUE(found.has_value()) << found.error().ToString();
      Contents contents;
      for (const gpu::Buffer& buffer : operands.buffers()) {
        contents.emplace_back(buffer.size_bytes());
        ASSERT_TRUE(device->Read(buffer.All(), contents.back()).has_value());
      }
      if (!checked) plain = contents;
      EXPECT_EQ(contents, plain);
    }
  }
}

// Any number of threads, with the same bits (G5).
TEST_P(OpAccess, G5_BitsDoNotDependOnTheThreads) {
  Contents first;
  for (const int threads : {1, 2, 3, 8}) {
    auto device =
        gpu::Device::Create(gpu::MakeBackend("cpu", {.threads = threads}).value()).value();
    auto ops = Ops::Create(device.get()).value();
    auto session = device->CreateSession().value();
    Operands operands(device.get(), 78);
    ASSERT_TRUE(GetParam().encode(*ops, *session, operands).has_value());
    ASSERT_TRUE(session->Commit().has_value());
    ASSERT_TRUE(session->Wait().has_value());
    Contents contents;
    for (const gpu::Buffer& buffer : operands.buffers()) {
      contents.emplace_back(buffer.size_bytes());
      ASSERT_TRUE(device->Read(buffer.All(), contents.back()).has_value());
    }
    if (first.empty()) first = contents;
    EXPECT_EQ(contents, first) << threads << " threads";
  }
}

// Bytes between two pages that nobody may touch, at the end or at the start of what lies between
// them.
class Fenced {
 public:
  Fenced(std::span<const std::byte> bytes, bool at_end) : size_(bytes.size()) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t middle = (bytes.size() + page - 1) / page * page;
    mapped_ = middle + 2 * page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_ + page, middle, PROT_READ | PROT_WRITE), 0);
    data_ = base_ + page + (at_end ? middle - bytes.size() : 0);
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() { munmap(base_, mapped_); }
  std::byte* data() const { return data_; }
  std::vector<std::byte> bytes() const { return {data_, data_ + size_}; }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t mapped_ = 0;
  size_t size_ = 0;
};

// Not even a read leaves the declared bytes, on any target: they stand beside pages that nobody may
// touch.
TEST_P(OpAccess, StaysInsideItsBindingsOnEveryIsa) {
  Bench bench;
  auto session = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
  Operands operands(bench.device.get(), 79);
  ASSERT_TRUE(GetParam().encode(*bench.ops, *session, operands).has_value());
  const SeenDispatch seen = bench.spy->seen().front();
  const Contents contents = bench.ReadAll(operands);
  const auto row = std::ranges::find(KernelTable(), seen.kernel, &KernelRow::name);
  for (const Isa isa : SupportedIsas()) {
    std::vector<std::vector<std::byte>> first;
    for (const bool at_end : {true, false}) {
      // A residual that is the output itself has one memory.
      std::map<std::pair<size_t, uint64_t>, std::unique_ptr<Fenced>> memory;
      std::vector<std::byte*> pointers;
      for (const gpu::BackendBinding& binding : seen.bindings) {
        const auto& known = bench.spy->buffers();
        const size_t i =
            static_cast<size_t>(std::ranges::find(known, binding.buffer) - known.begin());
        auto& fenced = memory[{i, binding.range.begin}];
        if (fenced == nullptr) {
          const std::span<const std::byte> all = contents[i];
          fenced = std::make_unique<Fenced>(all.subspan(binding.range.begin, binding.range.size()),
                                            at_end);
        }
        pointers.push_back(fenced->data());
      }
      Fenced shared(std::vector<std::byte>((seen.shared_bytes + 63) / 64 * 64), false);
      gpu::CpuKernelArgs args;
      args.bindings = pointers.data();
      args.constants = seen.constants.data();
      args.grid = seen.grid;
      args.shared = {shared.data(), seen.shared_bytes};
      for (uint32_t y = 0; y < seen.grid.y; ++y) {
        for (uint32_t x = 0; x < seen.grid.x; ++x) row->pick(isa)(args, {x, y, 0});
      }
      std::vector<std::vector<std::byte>> result;
      for (const auto& [place, fenced] : memory) result.push_back(fenced->bytes());
      if (first.empty()) first = result;
      EXPECT_EQ(result, first) << IsaName(isa) << ": the bits depend on the alignment";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpAccess, ::testing::ValuesIn(AllOpCases()),
                         [](const auto& tested) { return tested.param.name; });

// Together the cases run every kernel of the table.
TEST(OpCases, CoverEveryKernel) {
  Bench bench;
  auto session = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
  Operands operands(bench.device.get(), 79);
  for (const OpCase& op : AllOpCases()) {
    ASSERT_TRUE(op.encode(*bench.ops, *session, operands).has_value()) << op.name;
  }
  std::set<std::string> run;
  for (const SeenDispatch& seen : bench.spy->seen()) run.insert(seen.kernel);
  for (const KernelRow& row : KernelTable())
    EXPECT_TRUE(run.contains(std::string(row.name))) << row.name;
}

// Together the cases run every shader, and Vulkan's validation layer has nothing to say of one.
class ShaderCases : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ShaderCases);
TEST_P(ShaderCases, CoverEveryShader) {
  std::vector<std::string> messages;
  gpu::BackendOptions validated;
  validated.vulkan.validation = [&](std::string_view message) { messages.emplace_back(message); };
  Bench bench(GetParam(), validated);
  auto session = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
  Operands operands(bench.device.get(), 79);
  // Products of several tokens have a kernel more where the device has the path for it.
  const auto cooperative = Ops::Create(bench.device.get(), {.cooperative_matrix = true});
  for (const OpCase& op : AllOpCases()) {
    for (Ops* const ops : {bench.ops.get(), cooperative ? cooperative->get() : nullptr}) {
      if (ops == nullptr) continue;
      const Status encoded = op.encode(*ops, *session, operands);
      ASSERT_TRUE(encoded || encoded.error().code() == ErrorCode::kUnsupported) << op.name;
    }
  }
  std::set<std::string> run;
  for (const SeenDispatch& seen : bench.spy->seen()) {
    run.insert(seen.kernel);
    EXPECT_EQ(seen.shared_bytes, 0u) << seen.kernel;
  }
  EXPECT_THAT(messages, ::testing::IsEmpty());
  for (const SpirvRow& row : SpirvTable()) {
    if (row.kernel >= KernelIndex::kMatMulCooperativeF32 && !cooperative) continue;
    EXPECT_TRUE(run.contains(std::string(RowOf(row.kernel).name))) << RowOf(row.kernel).name;
  }
}
INSTANTIATE_TEST_SUITE_P(Backends, ShaderCases, ::testing::ValuesIn(gpu::testing::SpirvBackends()),
                         gpu::testing::BackendTestName);

// The rows that are appended and the rows that are seen, not the whole cache.
TEST(OpAccessRanges, CachesAreBoundByTheRowsTouched) {
  Bench bench;
  auto session = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
  Operands operands(bench.device.get(), 80);
  const Matrix k_cache = operands.Cache(DType::kF16, 50, 64);
  const Matrix v_cache = operands.Cache(DType::kF16, 50, 64);
  ASSERT_TRUE(
      bench.ops->KvAppend(*session, operands.F32(3, 64), operands.F32(3, 64), 7, k_cache, v_cache)
          .has_value());
  ASSERT_TRUE(bench.ops
                  ->Attention(*session, operands.F32(3, 128), k_cache, v_cache, 32, 7, 1.0f,
                              operands.Output(ActivationFormat::kF32, 3, 128))
                  .has_value());
  const uint64_t row = 64 * 2;
  const auto& append = bench.spy->seen()[0].bindings;
  const auto& attention = bench.spy->seen()[1].bindings;
  for (const size_t which : {size_t{0}, size_t{1}}) {
    const uint64_t begin = (which == 0 ? k_cache : v_cache).view.range().begin;
    EXPECT_EQ(append[2 + which].range, (ByteRange{begin + 7 * row, begin + 10 * row}));
    EXPECT_EQ(append[2 + which].access, Access::kWrite);
    EXPECT_EQ(attention[1 + which].range, (ByteRange{begin, begin + 10 * row}));
    EXPECT_EQ(attention[1 + which].access, Access::kRead);
    EXPECT_TRUE(append[2 + which].exact && attention[1 + which].exact);
  }
}

// A device whose bindings hold `limit` bytes at most.
class NarrowBackend final : public assay::testing::ForwardingBackend {
 public:
  NarrowBackend(std::unique_ptr<gpu::Backend> inner, uint64_t limit)
      : ForwardingBackend(std::move(inner)), limit_(limit) {}
  gpu::DeviceInfo info() const override {
    gpu::DeviceInfo info = ForwardingBackend::info();
    info.max_binding_bytes = limit_;
    return info;
  }

 private:
  uint64_t limit_;
};

class MatMulParts : public ::testing::TestWithParam<std::string> {};

// Weights over the limit go in parts of whole rows, with the bits of one dispatch; each part binds
// its own rows of the output.
TEST_P(MatMulParts, WeightsLargerThanABindingAreSplitByRows) {
  constexpr uint32_t kRows = 70, kCols = 64, kTokens = 2;
  constexpr uint64_t kLimit = 40 * kCols * 4;
  std::vector<std::vector<std::byte>> results;
  for (const uint64_t limit : {uint64_t{1} << 20, kLimit}) {
    auto device = gpu::Device::Create(
                      std::make_unique<NarrowBackend>(gpu::MakeBackend(GetParam()).value(), limit))
                      .value();
    auto ops = Ops::Create(device.get()).value();
    auto session = device->CreateSession().value();
    Operands o(device.get(), 83);
    const Matrix weights = o.Weights(DType::kF32, kRows, kCols);
    const Activations x = o.Input(ActivationFormat::kF32, kTokens, kCols);
    const Matrix out = o.F32(kTokens, kRows);
    const Status encoded = ops->MatMul(*session, weights, x, out, out.view);
    ASSERT_TRUE(encoded.has_value()) << encoded.error().ToString();
    EXPECT_EQ(session->counters().dispatches, limit == kLimit ? 2 * kTokens : 1);
    EXPECT_EQ(session->counters().barriers, 0u);
    ASSERT_TRUE(session->Commit().has_value());
    ASSERT_TRUE(session->Wait().has_value());
    results.emplace_back(out.view.size_bytes());
    ASSERT_TRUE(device->Read(out.view, results.back()).has_value());

    // What cannot be split is refused with both numbers.
    if (limit != kLimit) continue;
    const Matrix embedded{o.Output(ActivationFormat::kF32, 1, kCols).view, DType::kF32, 1, kCols};
    const Status refused =
        ops->Embedding(*session, weights, o.Values(std::vector<int32_t>{0}), embedded);
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), ::testing::HasSubstr(std::to_string(kLimit)));
    EXPECT_THAT(refused.error().message(), ::testing::HasSubstr(std::to_string(kRows * kCols * 4)));
  }
  EXPECT_EQ(results[0], results[1]);
}
INSTANTIATE_TEST_SUITE_P(Backends, MatMulParts, ::testing::ValuesIn(gpu::testing::PlainBackends()),
                         gpu::testing::BackendTestName);

// Where data picks the bytes, the binding says that it is wider.
TEST(OpAccessRanges, DataDependentReadsAreInexact) {
  Bench bench;
  auto session = bench.device->CreateSession({.barriers = gpu::BarrierMode::kManual}).value();
  Operands operands(bench.device.get(), 81);
  for (const OpCase& op : AllOpCases())
    ASSERT_TRUE(op.encode(*bench.ops, *session, operands).has_value());
  for (const SeenDispatch& seen : bench.spy->seen()) {
    const bool two = seen.kernel.starts_with("gate_up_by_expert");
    const bool by_data = two || seen.kernel.starts_with("embedding") ||
                         seen.kernel.starts_with("matmul_by_expert") ||
                         seen.kernel.starts_with("down_by_expert_sum");
    for (size_t i = 0; i < seen.bindings.size(); ++i) {
      EXPECT_EQ(seen.bindings[i].exact, !(by_data && (i == 0 || (two && i == 2))))
          << seen.kernel << " binding " << i;
    }
  }
}

}  // namespace
}  // namespace assay::kernels
