// What Ops holds, and how its operations bind.
#ifndef ASSAY_KERNELS_OPS_STATE_H_
#define ASSAY_KERNELS_OPS_STATE_H_

#include <array>
#include <cstdint>
#include <span>

#include "assay/kernels.h"

#include "kernels/kernel_table.h"
#include "kernels/launch.h"

namespace assay::kernels {

inline constexpr uint64_t kInt32Bytes = sizeof(int32_t);

inline gpu::Binding Read(const gpu::BufferView& view) { return {view, Access::kRead, true}; }
inline gpu::Binding ReadSome(const gpu::BufferView& view) { return {view, Access::kRead, false}; }
inline gpu::Binding Write(const gpu::BufferView& view) { return {view, Access::kWrite, true}; }
inline gpu::Binding ReadWrite(const gpu::BufferView& view) {
  return {view, Access::kReadWrite, true};
}

struct Ops::State {
  gpu::Device* device = nullptr;
  std::array<gpu::KernelId, static_cast<size_t>(KernelIndex::kCount)> ids;

  Status Encode(gpu::Session& session, const Launch& launch,
                std::span<const gpu::Binding> bindings) const {
    return session.Dispatch({.kernel = ids[static_cast<size_t>(launch.kernel)],
                             .bindings = bindings,
                             .constants = launch.constant_span(),
                             .grid = launch.grid,
                             .shared_bytes = launch.shared_bytes});
  }
  Status Elementwise(gpu::Session& session, bool add, const Matrix& a, const Matrix& b,
                     const Matrix& out) const;
};

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_OPS_STATE_H_
