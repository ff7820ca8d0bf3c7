#include "tests/faults/faulty_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/launch.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/simd/isa.h"

namespace assay::faults {

using gpu::CpuKernel;
using gpu::CpuKernelArgs;
using gpu::CpuWorkgroupFn;
using kernels::LoadConstants;

namespace {

template <CpuWorkgroupFn kRun>
constexpr CpuKernel kCode = {[]() -> CpuWorkgroupFn { return kRun; },
                             []() -> std::string_view { return "faulty"; }};

const float* Floats(const CpuKernelArgs& args, size_t binding) {
  return reinterpret_cast<const float*>(args.bindings[binding]);
}

// --- copy_rows

void CopyRowsGroup(const CpuKernelArgs& args, Extent3) {
  const auto copy = LoadConstants<CopyRows>(args);
  const auto* in = reinterpret_cast<const uint32_t*>(args.bindings[0]) + copy.in_begin;
  auto* out = reinterpret_cast<uint32_t*>(args.bindings[1]);
  for (uint32_t row = 0; row < copy.rows; ++row) {
    std::copy_n(in + size_t{row} * copy.in_stride, copy.width, out + size_t{row} * copy.out_stride);
  }
}

constexpr std::array kCopyRowsCode = {
    gpu::KernelCode{gpu::kCpuCodeFormat, &kCode<CopyRowsGroup>, sizeof(CpuKernel)}};
constexpr std::string_view kCopyRowsName = "copy_rows";

// --- kv_append

void AppendOneRow(const CpuKernelArgs& args, Extent3 group) {
  if (group.x > 0) return;
  kernels::PickKvAppendF32(kernels::ProcessIsa().value())(args, group);
}

// --- rms_norm

// As the engine's, with `sum_of_squares` in place of its sum.
template <typename Sum>
void NormRow(const CpuKernelArgs& args, Extent3 group, const Sum& sum_of_squares) {
  const auto c = LoadConstants<kernels::RmsNormConstants>(args);
  const float* x = Floats(args, 0) + size_t{group.x} * c.cols;
  auto* out = reinterpret_cast<float*>(args.bindings[1 + c.has_weight]) + size_t{group.x} * c.cols;
  const float mean = sum_of_squares(std::span(x, c.cols)) / static_cast<float>(c.cols);
  const float factor = 1.0F / std::sqrt(mean + c.eps);
  for (uint32_t j = 0; j < c.cols; ++j) {
    out[j] = x[j] * factor * (c.has_weight != 0 ? Floats(args, 1)[j] : 1.0F);
  }
}

float SumInOrder(std::span<const float> x) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  return sum;
}

void OtherOrderAboveEightRows(const CpuKernelArgs& args, Extent3 group) {
  if (args.grid.x <= 8) {
    kernels::PickRmsNormF32(kernels::ProcessIsa().value())(args, group);
  } else {
    NormRow(args, group, SumInOrder);
  }
}

template <size_t kParts>
void SplitNorm(const CpuKernelArgs& args, Extent3 group) {
  NormRow(args, group, [](std::span<const float> x) {
    const size_t part = (x.size() + kParts - 1) / kParts;
    float sum = 0;
    for (size_t begin = 0; begin < x.size(); begin += part) {
      sum += SumInOrder(x.subspan(begin, std::min(part, x.size() - begin)));
    }
    return sum;
  });
}

// --- attention

// Softmax over a stretch of positions, one after another.
struct Softmax {
  float largest = -INFINITY;
  float sum = 0;
  std::vector<float> out;

  explicit Softmax(uint32_t head_dim) : out(head_dim) {}
  void Scale(float to) {
    const float factor = sum == 0 ? 0 : std::exp(largest - to);
    sum *= factor;
    for (float& value : out) value *= factor;
    largest = to;
  }
  void Add(float score, const float* v) {
    if (score > largest) Scale(score);
    const float weight = std::exp(score - largest);
    sum += weight;
    for (size_t d = 0; d < out.size(); ++d) out[d] += weight * v[d];
  }
  void Add(const Softmax& other) {
    if (other.sum == 0) return;
    if (other.largest > largest) Scale(other.largest);
    const float weight = std::exp(other.largest - largest);
    sum += weight * other.sum;
    for (size_t d = 0; d < out.size(); ++d) out[d] += weight * other.out[d];
  }
};

// Attention in plain loops. `seen(c, position)` leaves a position out; those from `boundary(c)` on
// are taken apart and added at the end.
template <typename Seen, typename Boundary>
void Attend(const CpuKernelArgs& args, Extent3 group, const Seen& seen, const Boundary& boundary) {
  // The whole dispatch in its first workgroup: nothing here depends on how the grid is cut.
  if (group.x != 0 || group.y != 0) return;
  const auto c = LoadConstants<kernels::AttentionConstants>(args);
  const uint32_t kv_dim = c.kv_heads * c.head_dim;
  for (uint32_t token = 0; token < c.tokens; ++token) {
    for (uint32_t head = 0; head < c.heads; ++head) {
      const size_t place = (size_t{token} * c.heads + head) * c.head_dim;
      const float* q = Floats(args, 0) + place;
      const size_t kv_place = size_t{head / (c.heads / c.kv_heads)} * c.head_dim;
      Softmax before(c.head_dim);
      Softmax behind(c.head_dim);
      for (uint32_t position = 0; position <= c.first_position + token; ++position) {
        if (!seen(c, position)) continue;
        const float* k = Floats(args, 1) + size_t{position} * kv_dim + kv_place;
        float score = 0;
        for (uint32_t d = 0; d < c.head_dim; ++d) score += q[d] * k[d];
        Softmax& side = position < boundary(c) ? before : behind;
        side.Add(score * c.scale, Floats(args, 2) + size_t{position} * kv_dim + kv_place);
      }
      before.Add(behind);
      auto* out = reinterpret_cast<float*>(args.bindings[3]) + place;
      for (uint32_t d = 0; d < c.head_dim; ++d) out[d] = before.out[d] / before.sum;
    }
  }
}

void SkipTilesByHalf(const CpuKernelArgs& args, Extent3 group) {
  const auto seen = [](const kernels::AttentionConstants& c, uint32_t position) {
    const uint32_t tile = position / kernels::kAttentionTile;
    const uint32_t middle = tile * kernels::kAttentionTile + kernels::kAttentionTile / 2;
    return tile == 0 || middle < c.first_position + c.tokens;
  };
  Attend(args, group, seen, [](const kernels::AttentionConstants&) { return UINT32_MAX; });
}

void MergePrefixAndChunk(const CpuKernelArgs& args, Extent3 group) {
  Attend(
      args, group, [](const kernels::AttentionConstants&, uint32_t) { return true; },
      [](const kernels::AttentionConstants& c) { return c.first_position; });
}

}  // namespace

Status DispatchCopyRows(gpu::Device& device, gpu::Session& session, const CopyRows& copy,
                        const gpu::BufferView& in, const gpu::BufferView& out) {
  const std::vector<std::string> known = device.kernels().Names();
  if (std::ranges::find(known, kCopyRowsName) == known.end()) {
    ASSAY_TRY(device.kernels().Add({.name = kCopyRowsName,
                                    .workgroup = {1, 1, 1},
                                    .binding_count = 2,
                                    .constant_bytes = sizeof(CopyRows),
                                    .source_digest = "c0",
                                    .code = kCopyRowsCode}));
  }
  ASSAY_ASSIGN_OR_RETURN(const gpu::KernelId kernel, device.kernels().Get(kCopyRowsName));
  const std::array bindings = {gpu::Binding{in, Access::kRead}, gpu::Binding{out, Access::kWrite}};
  return session.Dispatch({.kernel = kernel,
                           .bindings = bindings,
                           .constants = std::as_bytes(std::span(&copy, 1)),
                           .grid = {1, 1, 1}});
}

Result<std::unique_ptr<gpu::BackendKernel>> PlantedKernel::CreateKernel(
    const gpu::KernelDesc& desc) {
  if (desc.name != name_) return ForwardingBackend::CreateKernel(desc);
  const gpu::KernelCode code{gpu::kCpuCodeFormat, code_, sizeof(CpuKernel)};
  gpu::KernelDesc planted = desc;
  planted.code = std::span(&code, 1);
  return ForwardingBackend::CreateKernel(planted);
}

constexpr Fault kAppendsOneRow = {"kv_append.f32", kCode<AppendOneRow>};
constexpr Fault kOtherOrderAboveEightRows = {"rms_norm.f32", kCode<OtherOrderAboveEightRows>};
constexpr Fault kSkipsTilesByHalf = {"attention.f32.f32", kCode<SkipTilesByHalf>};
constexpr Fault kMergesPrefixAndChunk = {"attention.f32.f32", kCode<MergePrefixAndChunk>};

const Fault& SplitByThreads(int threads) {
  static constexpr Fault kOne = {"rms_norm.f32", kCode<SplitNorm<1>>};
  static constexpr Fault kTwo = {"rms_norm.f32", kCode<SplitNorm<2>>};
  static constexpr Fault kThree = {"rms_norm.f32", kCode<SplitNorm<3>>};
  static constexpr Fault kEight = {"rms_norm.f32", kCode<SplitNorm<8>>};
  return threads == 1 ? kOne : threads == 2 ? kTwo : threads == 3 ? kThree : kEight;
}

}  // namespace assay::faults
