// A command buffer in the form in which the workers run it.
#ifndef ASSAY_GPU_CPU_COMMAND_LIST_H_
#define ASSAY_GPU_CPU_COMMAND_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

#include "gpu/check/bound_bytes.h"
#include "gpu/cpu/cpu_kernel.h"

namespace assay::gpu {

// One range that a dispatch binds.
using CpuBinding = BoundBytes;

struct CpuDispatch {
  CpuWorkgroupFn run = nullptr;
  std::string_view kernel_name;  // Lives as long as the kernel.
  Extent3 grid;
  uint32_t shared_bytes = 0;
  uint32_t first_binding = 0;
  uint32_t binding_count = 0;
  uint32_t first_constant = 0;  // In units of the alignment of constants.
  uint32_t constant_bytes = 0;
  uint32_t number = 0;  // In the order of encoding, from 1.
  // How its workgroups are cut: chunk c of the dispatch runs workgroups [c * chunk_workgroups,
  // ...).
  uint32_t workgroups = 0;
  uint32_t chunk_workgroups = 0;
  uint32_t first_chunk = 0;  // Within its group.
};

// Runs `count` workgroups from number `first`, x fastest.
void RunWorkgroups(const CpuDispatch& dispatch, const CpuKernelArgs& args, uint32_t first,
                   uint32_t count);

// The dispatches between two barriers: one pool of chunks that may run in any order and at once.
struct CpuGroup {
  uint32_t first_dispatch = 0;
  uint32_t dispatch_count = 0;
  uint32_t chunks = 0;
  // Its one chunk runs these steps of the list in order; none when the two are equal.
  size_t first_step = 0;
  size_t end_step = 0;
};

// Filled by one thread, then run by many without change, then cleared and filled again; its memory
// is kept, so that encoding allocates nothing once it has grown.
class CommandList final {
 public:
  CommandList() = default;
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  // Workgroups are cut into at most `max_chunks` chunks. False when the group is full.
  bool AddDispatch(const CpuDispatch& dispatch, std::span<const CpuBinding> bindings,
                   std::span<const std::byte> constants, uint32_t max_chunks);
  void AddBarrier() { group_open_ = false; }
  // A barrier behind a group that is to run its workgroups one at a time, in an order that `seed`
  // fixes. False when the group has too many workgroups for that.
  bool AddInterleavedBarrier(uint64_t seed);
  // No more dispatches. A list without any gets one empty group, so that there is something to run.
  void End();
  void Clear();

  std::span<const CpuGroup> groups() const { return groups_; }
  std::span<const CpuDispatch> DispatchesOf(const CpuGroup& group) const {
    return std::span(dispatches_).subspan(group.first_dispatch, group.dispatch_count);
  }
  std::span<const CpuBinding> BindingsOf(const CpuDispatch& dispatch) const {
    return std::span(bindings_).subspan(dispatch.first_binding, dispatch.binding_count);
  }
  // As the kernel sees the dispatch.
  CpuKernelArgs ArgsOf(const CpuDispatch& dispatch, std::span<std::byte> scratch) const;

  // Runs chunk `chunk` of `group`. `scratch` is the calling thread's own and holds the largest
  // shared_bytes.
  void RunChunk(const CpuGroup& group, uint32_t chunk, std::span<std::byte> scratch) const;

 private:
  struct alignas(16) ConstantUnit {
    std::byte bytes[16];
  };
  // One workgroup of an interleaved group.
  struct Step {
    uint32_t dispatch;
    uint32_t workgroup;
  };

  bool group_open_ = false;
  std::vector<CpuGroup> groups_;
  std::vector<CpuDispatch> dispatches_;
  std::vector<CpuBinding> bindings_;
  std::vector<std::byte*> binding_pointers_;  // As kernels see them, beside bindings_.
  std::vector<uint64_t> binding_bytes_;
  std::vector<ConstantUnit> constants_;
  std::vector<Step> steps_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_CPU_COMMAND_LIST_H_
