// Adds two vectors and scales the sum on a device, with the barrier placed by hand.
#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "assay/gpu.h"
#include "assay/kernels.h"

namespace {

using assay::BufferKind;
using assay::ErrorCode;
using assay::Fail;
using assay::Result;
namespace gpu = assay::gpu;
namespace kernels = assay::kernels;

constexpr uint32_t kCount = 1000;

// A buffer of kCount floats; every element has the value `value`.
Result<kernels::Matrix> MakeVector(gpu::Device& device, const char* label, float value) {
  std::array<float, kCount> values;
  values.fill(value);
  ASSAY_ASSIGN_OR_RETURN(
      const gpu::Buffer buffer,
      device.CreateBuffer(
          {.size_bytes = sizeof values, .kind = BufferKind::kHost, .label = label, .digest = {}}));
  ASSAY_TRY(device.Write(buffer.All(), std::as_bytes(std::span(values))));
  return kernels::Matrix{buffer.All(), kernels::DType::kF32, 1, kCount};
}

Result<float> AddAndScale() {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<gpu::Backend> backend, gpu::MakeBackend("cpu"));
  ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
  ASSAY_ASSIGN_OR_RETURN(const auto ops, kernels::Ops::Create(device.get()));
  ASSAY_ASSIGN_OR_RETURN(const auto session,
                         device->CreateSession({.barriers = gpu::BarrierMode::kManual}));

  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix a, MakeVector(*device, "a", 1.5f));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix b, MakeVector(*device, "b", 2.0f));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix scale, MakeVector(*device, "scale", 4.0f));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix sum, MakeVector(*device, "sum", 0.0f));
  ASSAY_ASSIGN_OR_RETURN(const kernels::Matrix scaled, MakeVector(*device, "scaled", 0.0f));

  ASSAY_TRY(ops->Add(*session, a, b, sum));
  // Mul reads what Add writes. Without this the two may run at the same time.
  ASSAY_TRY(session->Barrier());
  ASSAY_TRY(ops->Mul(*session, sum, scale, scaled));
  ASSAY_TRY(session->Commit());
  ASSAY_TRY(session->Wait());

  std::array<float, kCount> result;
  ASSAY_TRY(device->Read(scaled.view, std::as_writable_bytes(std::span(result))));
  for (const float value : result) {
    if (value != result[0]) return Fail(ErrorCode::kInternal, "", "The elements differ.");
  }
  return result[0];
}

}  // namespace

int main() {
  const Result<float> result = AddAndScale();
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
    return 1;
  }
  std::printf("(1.5 + 2) * 4 = %g\n", static_cast<double>(*result));
  return *result == 14.0f ? 0 : 1;
}
