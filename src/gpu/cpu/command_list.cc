#include "gpu/cpu/command_list.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "gpu/schedule/split_mix.h"

namespace assay::gpu {
namespace {

// Chunk numbers fit into half of a 64-bit ticket, with room for the claims that come too late.
constexpr uint32_t kMaxGroupChunks = uint32_t{1} << 30;
constexpr uint64_t kMaxInterleaved = uint64_t{1} << 26;

// All numbers below `count`, each once, in an order of `random`'s.
class Scramble {
 public:
  Scramble(uint32_t count, SplitMix* random) : count_(count), next_(random->Below(count)) {
    do {
      stride_ = 1 + random->Below(count);
    } while (std::gcd(stride_, count_) != 1);
  }
  uint32_t left() const { return static_cast<uint32_t>(count_ - taken_); }
  uint32_t Take() {
    ++taken_;
    return static_cast<uint32_t>(std::exchange(next_, (next_ + stride_) % count_));
  }

 private:
  uint64_t count_;
  uint64_t next_;
  uint64_t stride_ = 1;
  uint64_t taken_ = 0;
};

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
    groups_.push_back({.first_dispatch = static_cast<uint32_t>(dispatches_.size())});
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

bool CommandList::AddInterleavedBarrier(uint64_t seed) {
  if (!std::exchange(group_open_, false)) return true;
  CpuGroup& group = groups_.back();
  SplitMix random(seed);
  std::vector<Scramble> scrambles;
  uint64_t left = 0;
  for (const CpuDispatch& dispatch : DispatchesOf(group)) {
    scrambles.emplace_back(dispatch.workgroups, &random);
    left += dispatch.workgroups;
  }
  if (left > kMaxInterleaved) return false;
  group.chunks = 1;
  group.first_step = steps_.size();
  for (; left > 0; --left) {
    // A workgroup drawn from all that are left, so that the dispatches end at about the same time.
    uint64_t drawn = random.Below(left);
    uint32_t dispatch = group.first_dispatch;
    auto scramble = scrambles.begin();
    for (; drawn >= scramble->left(); ++scramble, ++dispatch) drawn -= scramble->left();
    steps_.push_back({dispatch, scramble->Take()});
  }
  group.end_step = steps_.size();
  return true;
}

void CommandList::End() {
  if (groups_.empty()) groups_.push_back({.chunks = 1});
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
  steps_.clear();
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
  if (group.first_step != group.end_step) {
    for (size_t i = group.first_step; i < group.end_step; ++i) {
      const CpuDispatch& dispatch = dispatches_[steps_[i].dispatch];
      RunWorkgroups(dispatch, ArgsOf(dispatch, scratch), steps_[i].workgroup, 1);
    }
    return;
  }
  // The last dispatch whose first chunk is not behind `chunk`.
  const CpuDispatch& dispatch =
      *(std::ranges::upper_bound(dispatches, chunk, {}, &CpuDispatch::first_chunk) - 1);
  const CpuKernelArgs args = ArgsOf(dispatch, scratch);
  const uint32_t first = (chunk - dispatch.first_chunk) * dispatch.chunk_workgroups;
  const uint32_t count = std::min(dispatch.chunk_workgroups, dispatch.workgroups - first);
  RunWorkgroups(dispatch, args, first, count);
}

}  // namespace assay::gpu
