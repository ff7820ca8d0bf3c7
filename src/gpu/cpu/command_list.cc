#include "gpu/cpu/command_list.h"

#include <algorithm>
#include <cstring>

namespace assay::gpu {
namespace {

// Chunk numbers fit into half of a 64-bit ticket, with room for the claims that come too late.
constexpr uint32_t kMaxGroupChunks = uint32_t{1} << 30;

}  // namespace

void RunWorkgroups(const CpuDispatch& dispatch, const CpuKernelArgs& args, uint32_t first,
                   uint32_t count) {
  const Extent3 grid = dispatch.grid;
  Extent3 workgroup{first % grid.x, first / grid.x % grid.y, first / grid.x / grid.y};
  for (uint32_t i = 0; i < count; ++i) {
    dispatch.run(args, workgroup);
    if (++workgroup.x < grid.x) continue;
    workgroup.x = 0;
    if (++workgroup.y < grid.y) continue;
    workgroup.y = 0;
    ++workgroup.z;
  }
}

bool CommandList::AddDispatch(const CpuDispatch& dispatch, std::span<const CpuBinding> bindings,
                              std::span<const std::byte> constants, uint32_t max_chunks) {
  if (!group_open_) {
    groups_.push_back({static_cast<uint32_t>(dispatches_.size()), 0, 0});
    group_open_ = true;
  }
  CpuGroup& group = groups_.back();
  CpuDispatch added = dispatch;
  added.workgroups = static_cast<uint32_t>(added.grid.Count());
  added.chunk_workgroups = (added.workgroups - 1) / max_chunks + 1;
  added.first_chunk = group.chunks;
  const uint32_t chunks = (added.workgroups - 1) / added.chunk_workgroups + 1;
  if (chunks > kMaxGroupChunks - group.chunks) return false;
  added.first_binding = static_cast<uint32_t>(bindings_.size());
  added.binding_count = static_cast<uint32_t>(bindings.size());
  added.first_constant = static_cast<uint32_t>(constants_.size());
  added.constant_bytes = static_cast<uint32_t>(constants.size());
  added.number = static_cast<uint32_t>(dispatches_.size()) + 1;

  for (const CpuBinding& binding : bindings) {
    bindings_.push_back(binding);
    binding_pointers_.push_back(binding.allocation + binding.range.begin);
    binding_bytes_.push_back(binding.range.size());
  }
  if (!constants.empty()) {
    const size_t units = (constants.size() - 1) / sizeof(ConstantUnit) + 1;
    constants_.resize(constants_.size() + units);
    std::memcpy(&constants_[added.first_constant], constants.data(), constants.size());
  }
  dispatches_.push_back(added);
  ++group.dispatch_count;
  group.chunks += chunks;
  return true;
}

void CommandList::End() {
  if (groups_.empty()) groups_.push_back({0, 0, 1});
  group_open_ = false;
}

void CommandList::Clear() {
  group_open_ = false;
  groups_.clear();
  dispatches_.clear();
  bindings_.clear();
  binding_pointers_.clear();
  binding_bytes_.clear();
  constants_.clear();
}

CpuKernelArgs CommandList::ArgsOf(const CpuDispatch& dispatch, std::span<std::byte> scratch) const {
  CpuKernelArgs args;
  args.bindings = binding_pointers_.data() + dispatch.first_binding;
  args.binding_bytes = binding_bytes_.data() + dispatch.first_binding;
  args.constants = reinterpret_cast<const std::byte*>(constants_.data() + dispatch.first_constant);
  args.grid = dispatch.grid;
  args.shared = scratch.first(dispatch.shared_bytes);
  return args;
}

void CommandList::RunChunk(const CpuGroup& group, uint32_t chunk,
                           std::span<std::byte> scratch) const {
  const std::span<const CpuDispatch> dispatches = DispatchesOf(group);
  if (dispatches.empty()) return;
  // The last dispatch whose first chunk is not behind `chunk`.
  const CpuDispatch& dispatch =
      *(std::ranges::upper_bound(dispatches, chunk, {}, &CpuDispatch::first_chunk) - 1);
  const CpuKernelArgs args = ArgsOf(dispatch, scratch);
  const uint32_t first = (chunk - dispatch.first_chunk) * dispatch.chunk_workgroups;
  const uint32_t count = std::min(dispatch.chunk_workgroups, dispatch.workgroups - first);
  RunWorkgroups(dispatch, args, first, count);
}

}  // namespace assay::gpu
