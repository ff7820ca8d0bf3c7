// What Ops holds, and how its operations bind.
#ifndef ASSAY_KERNELS_OPS_STATE_H_
#define ASSAY_KERNELS_OPS_STATE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "assay/kernels.h"

#include "kernels/kernel_table.h"
#include "kernels/launch.h"
#include "kernels/target.h"

namespace assay::kernels {

inline constexpr uint64_t kInt32Bytes = sizeof(int32_t);

inline gpu::Binding Read(const gpu::BufferView& view) { return {view, Access::kRead, true}; }
inline gpu::Binding ReadSome(const gpu::BufferView& view) { return {view, Access::kRead, false}; }
inline gpu::Binding Write(const gpu::BufferView& view) { return {view, Access::kWrite, true}; }
inline gpu::Binding ReadWrite(const gpu::BufferView& view) {
  return {view, Access::kReadWrite, true};
}

struct AttentionSplit;

struct Ops::State {
  gpu::Device* device = nullptr;
  Target target = Target::kCpu;
  uint64_t max_binding_bytes = 0;
  bool cooperative_matrix = false;
  // All of them on kCpu. On kSpirv a kernel is built when it is first used: a driver takes its time
  // over each.
  std::array<std::optional<gpu::KernelId>, static_cast<size_t>(KernelIndex::kCount)> ids;

  Status Encode(gpu::Session& session, const Launch& launch,
                std::span<const gpu::Binding> bindings) {
    const std::optional<gpu::KernelId>& id = ids[static_cast<size_t>(launch.kernel)];
    if (target == Target::kSpirv) ASSAY_TRY(PrepareSpirv(launch));
    return session.Dispatch({.kernel = *id,
                             .bindings = bindings,
                             .constants = launch.constant_span(),
                             .grid = launch.grid,
                             .shared_bytes = launch.shared_bytes});
  }
  // Builds the kernel, and checks the grid.
  Status PrepareSpirv(const Launch& launch);
  // The launch of a product whose operands fit their bindings.
  Launch MatMulLaunch(const Matrix& weights, uint32_t rows, uint32_t tokens,
                      bool add_residual) const;
  // `rows` are those of one expert.
  Launch MatMulByExpertLaunch(const Matrix& weights, uint32_t rows, uint32_t experts,
                              uint32_t pairs, uint32_t fan) const;
  // `out` in dispatches whose weights fit a binding.
  Status MatMulInParts(gpu::Session& session, const Matrix& weights, const Activations& x,
                       const Matrix& out, const gpu::BufferView& residual);
  // The launch of SplitAttention(), whose room is bound behind the op's own four bindings.
  Status SharedAttention(gpu::Session& session, const Launch& launch,
                         const std::array<gpu::Binding, 4>& bindings, const AttentionSplit& split,
                         const AttentionRoom& room);
  Status Elementwise(gpu::Session& session, bool add, const Matrix& a, const Matrix& b,
                     const Matrix& out);
};

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_OPS_STATE_H_
