#include "gpu/schedule/group_conflicts.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::gpu {
namespace {

struct Use {
  const BackendBinding* binding;
  uint32_t dispatch;
  uint32_t index;  // Of the binding.
};

GroupConflict ConflictOf(const Use& a, const Use& b) {
  const auto [first, second] = a.dispatch < b.dispatch ? std::pair(&a, &b) : std::pair(&b, &a);
  return {.first = first->dispatch,
          .second = second->dispatch,
          .first_binding = first->index,
          .second_binding = second->index,
          .range = a.binding->range.Intersect(b.binding->range),
          .certain = a.binding->exact && b.binding->exact};
}

}  // namespace

void ForEachConflict(std::span<const BackendDispatch> group,
                     const std::function<bool(const GroupConflict&)>& visit) {
  std::vector<Use> uses;
  for (uint32_t d = 0; d < group.size(); ++d) {
    const std::span<const BackendBinding> bindings = group[d].bindings;
    for (uint32_t b = 0; b < bindings.size(); ++b) {
      if (!bindings[b].range.empty()) uses.push_back({&bindings[b], d, b});
    }
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
    if (a.binding->buffer != b.binding->buffer) {
      return std::less<>()(a.binding->buffer, b.binding->buffer);
    }
    return std::tuple(a.binding->range.begin, a.dispatch, a.index) <
           std::tuple(b.binding->range.begin, b.dispatch, b.index);
  });

  // A sweep over each buffer. Whatever began before a use and has not ended there overlaps it, so
  // that all the time beyond the sort is spent on conflicts or on what leaves the lists for good.
  std::vector<Use> readers;
  std::vector<Use> writers;
  const auto meets = [&](const Use& use, std::vector<Use>& open) {
    const ByteRange range = use.binding->range;
    std::erase_if(open, [&](const Use& other) { return other.binding->range.end <= range.begin; });
    return std::ranges::all_of(open, [&](const Use& other) {
      return other.dispatch == use.dispatch || visit(ConflictOf(other, use));
    });
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    const Use& use = uses[i];
    if (i > 0 && uses[i - 1].binding->buffer != use.binding->buffer) {
      readers.clear();
      writers.clear();
    }
    if (!meets(use, writers)) return;
    if (!Writes(use.binding->access)) {
      readers.push_back(use);
      continue;
    }
    // One that reads and writes is in the list of writers only, and meets everything there.
    if (!meets(use, readers)) return;
    writers.push_back(use);
  }
}

std::optional<GroupConflict> FirstCertainConflict(std::span<const BackendDispatch> group) {
  std::optional<GroupConflict> best;
  const auto key = [](const GroupConflict& conflict) {
    return std::tuple(conflict.second, UINT32_MAX - conflict.first, conflict.first_binding,
                      conflict.second_binding);
  };
  ForEachConflict(group, [&](const GroupConflict& conflict) {
    if (conflict.certain && (!best || key(conflict) < key(*best))) best = conflict;
    return true;
  });
  return best;
}

}  // namespace assay::gpu
