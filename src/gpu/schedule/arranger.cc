#include "gpu/schedule/arranger.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "gpu/schedule/group_conflicts.h"
#include "gpu/schedule/split_mix.h"

namespace assay::gpu {
namespace {

// Past so many producers and readers in one group, the list of them is not worth its memory.
constexpr size_t kMaxEdges = size_t{1} << 22;

// One number for a group under a seed.
uint64_t SeedOf(uint64_t seed, const Group& group) {
  SplitMix mix(seed);
  SplitMix of_buffer(mix.Next() ^ group.command_buffer);
  return of_buffer.Next() ^ group.number;
}

void Shuffle(uint64_t seed, std::vector<uint32_t>* order) {
  SplitMix random(seed);
  for (size_t i = order->size(); i > 1; --i) std::swap((*order)[i - 1], (*order)[random.Below(i)]);
}

// (reader, producer), both of the group, the reader behind the producer in recorded order. False
// when there are more than kMaxEdges.
bool CollectReaders(const Group& group, std::vector<std::pair<uint32_t, uint32_t>>* edges) {
  const auto add = [edges](uint32_t reader, uint32_t producer) {
    edges->emplace_back(reader, producer);
    return edges->size() <= kMaxEdges;
  };
  const auto count = static_cast<uint32_t>(group.dispatches.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (!group.dispatches[i].bindings.empty()) continue;
    // It may read and write everything.
    for (uint32_t other = 0; other < count; ++other) {
      if (other != i && !add(std::max(i, other), std::min(i, other))) return false;
    }
  }
  ForEachConflict(group.dispatches, [&](const GroupConflict& conflict) {
    const auto& producer = group.dispatches[conflict.first].bindings[conflict.first_binding];
    const auto& reader = group.dispatches[conflict.second].bindings[conflict.second_binding];
    if (!Writes(producer.access) || !Reads(reader.access)) return true;
    return add(conflict.second, conflict.first);
  });
  return edges->size() <= kMaxEdges;
}

// Of those whose readers have all been placed, the first in recorded order comes next. Readers
// stand behind their producers in recorded order, so that there is always one.
std::vector<uint32_t> LateWritesOrder(const Group& group) {
  const size_t count = group.dispatches.size();
  std::vector<uint32_t> order(count);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  if (!CollectReaders(group, &edges)) {
    // Reversed is one such order, if not the nearest to the recorded one.
    std::iota(order.rbegin(), order.rend(), 0U);
    return order;
  }
  std::sort(edges.begin(), edges.end());
  std::vector<uint32_t> waits_for(count);
  for (const auto& [reader, producer] : edges) ++waits_for[producer];
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  for (uint32_t& place : order) {
    place = ready.top();
    ready.pop();
    auto edge = std::ranges::lower_bound(edges, place, {}, &std::pair<uint32_t, uint32_t>::first);
    for (; edge != edges.end() && edge->first == place; ++edge) {
      if (--waits_for[edge->second] == 0) ready.push(edge->second);
    }
  }
  return order;
}

class ScheduleArranger final : public Arranger {
 public:
  explicit ScheduleArranger(const Schedule& schedule) : schedule_(schedule) {}
  Arrangement Choose(const Group& group) override { return Arrange(schedule_, group); }

 private:
  const Schedule schedule_;
};

}  // namespace

Arrangement RecordedArrangement(size_t count) {
  Arrangement arrangement;
  arrangement.order.resize(count);
  std::iota(arrangement.order.begin(), arrangement.order.end(), 0U);
  return arrangement;
}

Arrangement Arrange(const Schedule& schedule, const Group& group) {
  Arrangement arrangement = RecordedArrangement(group.dispatches.size());
  switch (schedule.kind) {
    case ScheduleKind::kRecorded:
      break;
    case ScheduleKind::kReversed:
      std::ranges::reverse(arrangement.order);
      break;
    case ScheduleKind::kLateWrites:
      arrangement.order = LateWritesOrder(group);
      break;
    case ScheduleKind::kRandom:
      Shuffle(SeedOf(schedule.seed, group), &arrangement.order);
      break;
    case ScheduleKind::kInterleaved:
      arrangement.mixed_end = static_cast<uint32_t>(arrangement.order.size());
      arrangement.mixed_seed = SeedOf(schedule.seed, group);
      break;
  }
  return arrangement;
}

std::shared_ptr<Arranger> MakeScheduleArranger(const Schedule& schedule) {
  return std::make_shared<ScheduleArranger>(schedule);
}

}  // namespace assay::gpu
