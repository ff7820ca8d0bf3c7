#include "tests/conformance/test_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "gpu/cpu/cpu_kernel.h"
#include "gpu/vulkan/spirv_kernel.h"
#include "test_shaders/kAddMulShader.h"
#include "test_shaders/kAddShader.h"
#include "test_shaders/kBumpShader.h"
#include "test_shaders/kGroupSumShader.h"
#include "test_shaders/kHoldShader.h"
#include "test_shaders/kMeetShader.h"
#include "test_shaders/kMulShader.h"
#include "test_shaders/kNothingShader.h"
#include "test_shaders/kPeekShader.h"

namespace assay::gpu::testing {
namespace {

template <typename T>
T* Bound(const CpuKernelArgs& args, size_t index) {
  return reinterpret_cast<T*>(args.bindings[index]);
}

template <typename Op>
void ElementwiseGroup(const CpuKernelArgs& args, Extent3 group) {
  const uint64_t count = args.binding_bytes[2] / sizeof(float);
  const uint64_t first = uint64_t{group.x} * kWorkgroupElements;
  const float* a = Bound<float>(args, 0);
  const float* b = Bound<float>(args, 1);
  float* out = Bound<float>(args, 2);
  for (uint64_t i = first; i < std::min(count, first + kWorkgroupElements); ++i) {
    out[i] = Op()(a[i], b[i]);
  }
}

void AddMulGroup(const CpuKernelArgs& args, Extent3 group) {
  const uint64_t count = args.binding_bytes[3] / sizeof(float);
  const uint64_t first = uint64_t{group.x} * kWorkgroupElements;
  const float* a = Bound<float>(args, 0);
  const float* b = Bound<float>(args, 1);
  const float* c = Bound<float>(args, 2);
  float* out = Bound<float>(args, 3);
  for (uint64_t i = first; i < std::min(count, first + kWorkgroupElements); ++i) {
    const float sum = a[i] + b[i];
    out[i] = sum * c[i];
  }
}

void BumpGroup(const CpuKernelArgs& args, Extent3 group) {
  const uint64_t count = args.binding_bytes[0] / sizeof(uint32_t);
  const uint64_t first = uint64_t{group.x} * kWorkgroupElements;
  uint32_t* x = Bound<uint32_t>(args, 0);
  for (uint64_t i = first; i < std::min(count, first + kWorkgroupElements); ++i) ++x[i];
}

void MeetGroup(const CpuKernelArgs& args, Extent3) {
  uint32_t wanted = 0;
  std::memcpy(&wanted, args.constants, sizeof(wanted));
  std::atomic_ref<uint32_t> arrived(*Bound<uint32_t>(args, 0));
  arrived.fetch_add(1);
  while (arrived.load() < wanted) std::this_thread::yield();
}

// The accesses of "hold" and "peek" race on purpose, so they are atomic.
void HoldGroup(const CpuKernelArgs& args, Extent3) {
  std::atomic_ref<uint32_t> flag(*Bound<uint32_t>(args, 0));
  while (flag.load() == 0) std::this_thread::yield();
  std::atomic_ref<uint32_t>(*Bound<uint32_t>(args, 1)).store(1);
}

void PeekGroup(const CpuKernelArgs& args, Extent3) {
  *Bound<uint32_t>(args, 1) = std::atomic_ref<uint32_t>(*Bound<uint32_t>(args, 0)).load();
  std::atomic_ref<uint32_t>(*Bound<uint32_t>(args, 2)).store(1);
}

void NothingGroup(const CpuKernelArgs&, Extent3) {}

void GroupSumGroup(const CpuKernelArgs& args, Extent3 group) {
  const uint64_t count = args.binding_bytes[0] / sizeof(float);
  const uint64_t first = uint64_t{group.x} * kWorkgroupElements;
  const uint64_t mine = std::min<uint64_t>(kWorkgroupElements, count - first);
  std::memcpy(args.shared.data(), Bound<float>(args, 0) + first, mine * sizeof(float));
  const auto* copied = reinterpret_cast<const float*>(args.shared.data());
  float sum = 0;
  for (uint64_t i = 0; i < mine; ++i) sum += copied[i];
  Bound<float>(args, 1)[group.x] = sum;
}

template <CpuWorkgroupFn kRun>
constexpr CpuKernel kCode = {[]() -> CpuWorkgroupFn { return kRun; },
                             []() -> std::string_view { return "test"; }};

template <CpuWorkgroupFn kRun, const SpirvKernel* kShader>
constexpr std::array<KernelCode, 2> kCodes = {
    KernelCode{kCpuCodeFormat, &kCode<kRun>, sizeof(CpuKernel)},
    KernelCode{kSpirvCodeFormat, kShader, sizeof(SpirvKernel)}};

template <CpuWorkgroupFn kRun, const SpirvKernel* kShader>
constexpr KernelDesc Describe(std::string_view name, uint32_t bindings,
                              uint32_t constant_bytes = 0) {
  return {name,   {kWorkgroupElements, 1, 1}, bindings, constant_bytes,
          "7e57", kCodes<kRun, kShader>};
}

constexpr std::array kKernels = {
    Describe<ElementwiseGroup<std::plus<float>>, &kAddShader>("add", 3),
    Describe<ElementwiseGroup<std::multiplies<float>>, &kMulShader>("mul", 3),
    Describe<AddMulGroup, &kAddMulShader>("add_mul", 4),
    Describe<BumpGroup, &kBumpShader>("bump", 1),
    Describe<MeetGroup, &kMeetShader>("meet", 1, sizeof(uint32_t)),
    Describe<HoldGroup, &kHoldShader>("hold", 2),
    Describe<PeekGroup, &kPeekShader>("peek", 3),
    Describe<NothingGroup, &kNothingShader>("nothing", 0),
    Describe<GroupSumGroup, &kGroupSumShader>("group_sum", 2),
};

constexpr std::array<std::string_view, 2> kAddMulParts = {"add", "mul"};
constexpr std::array kAddMulLinks = {BindingPair{{0, 2}, {1, 0}}};
constexpr std::array kAddMulBindings = {
    FusedBinding{{0, 0}, Access::kRead}, FusedBinding{{0, 1}, Access::kRead},
    FusedBinding{{1, 1}, Access::kRead}, FusedBinding{{1, 2}, Access::kWrite}};
constexpr std::array kAddMulRules = {
    FusionRule{"add_mul",
               kAddMulParts,
               kAddMulLinks,
               {},
               kAddMulBindings,
               [](std::span<const Dispatch> parts, FusedLaunch& launch) {
                 launch.grid = parts[1].grid;
                 return parts[1].bindings[2].view.size_bytes() <= (1 << 20);
               }}};

uint32_t WorkgroupsFor(uint64_t size_bytes) {
  return static_cast<uint32_t>((size_bytes / sizeof(float) - 1) / kWorkgroupElements + 1);
}

}  // namespace

void RegisterTestKernels(Device& device) {
  for (const KernelDesc& kernel : kKernels) {
    const Status added = device.kernels().Add(kernel);
    ASSERT_TRUE(added) << added.error().ToString();
  }
}

std::span<const FusionRule> AddMulRule() { return kAddMulRules; }

KernelId Kernel(Device& device, std::string_view name) {
  const Result<KernelId> id = device.kernels().Get(name);
  EXPECT_TRUE(id) << id.error().ToString();
  return id.value_or(KernelId());
}

Buffer MakeBuffer(Device& device, uint64_t size_bytes, std::string label) {
  Result<Buffer> buffer =
      device.CreateBuffer({.size_bytes = size_bytes, .label = std::move(label), .digest = {}});
  EXPECT_TRUE(buffer) << buffer.error().ToString();
  return buffer.value_or(Buffer());
}

BufferView View(const Buffer& buffer, uint64_t offset, uint64_t length) {
  Result<BufferView> view = buffer.View(offset, length);
  EXPECT_TRUE(view) << view.error().ToString();
  return view.value_or(BufferView());
}

TestDispatch Elementwise(Device& device, std::string_view kernel, const BufferView& a,
                         const BufferView& b, const BufferView& out) {
  return TestDispatch(Kernel(device, kernel),
                      {{a, Access::kRead}, {b, Access::kRead}, {out, Access::kWrite}},
                      WorkgroupsFor(out.size_bytes()));
}

TestDispatch Bump(Device& device, const BufferView& x) {
  return TestDispatch(Kernel(device, "bump"), {{x, Access::kReadWrite}},
                      WorkgroupsFor(x.size_bytes()));
}

TestDispatch Meet(Device& device, const BufferView& counter, uint32_t count) {
  return TestDispatch(Kernel(device, "meet"), {{counter, Access::kReadWrite}}, 1, Bytes(count));
}

std::vector<std::byte> Bytes(uint32_t value) {
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

void WriteFloats(Device& device, const BufferView& view, std::span<const float> values) {
  const Status written = device.Write(view, std::as_bytes(values));
  ASSERT_TRUE(written) << written.error().ToString();
}

std::vector<float> ReadFloats(Device& device, const BufferView& view) {
  std::vector<float> values(view.size_bytes() / sizeof(float));
  const Status read = device.Read(view, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(read) << read.error().ToString();
  return values;
}

std::vector<uint32_t> ReadWords(Device& device, const BufferView& view) {
  std::vector<uint32_t> values(view.size_bytes() / sizeof(uint32_t));
  const Status read = device.Read(view, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(read) << read.error().ToString();
  return values;
}

}  // namespace assay::gpu::testing
