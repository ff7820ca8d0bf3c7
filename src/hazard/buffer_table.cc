#include "hazard/buffer_table.h"

#include <algorithm>

namespace assay::hazard {

bool BufferTable::Make(const trace::BufferEvent& event, std::string_view label,
                       uint32_t made_after) {
  if (Find(event.buffer)) return false;
  const auto index = static_cast<BufferIndex>(infos_.size());
  const uint64_t id = event.buffer.value();
  // Names are dense in any trace that a recorder wrote; one that is not must not cost memory.
  if (id < 4 * infos_.size() + 4096) {
    if (id >= index_by_small_id_.size()) index_by_small_id_.resize(id + 1 + id / 2);
    index_by_small_id_[id] = index + 1;
  } else {
    index_by_id_.emplace(event.buffer, index);
  }

  uint32_t slot = static_cast<uint32_t>(live_.size());
  if (free_slots_.empty()) {
    live_.push_back(std::make_unique<LiveBytes>());
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  live_[slot]->all_written = !event.digest.empty();
  live_[slot]->join_above = ranges_kept_apart_;
  infos_.push_back(BufferInfo{.id = event.buffer,
                              .size_bytes = event.size_bytes,
                              .label = label,
                              .kind = event.kind,
                              .made_after = made_after,
                              .live_slot = slot});
  return true;
}

std::optional<BufferIndex> BufferTable::Find(trace::BufferId id) const {
  const uint64_t value = id.value();
  if (value < index_by_small_id_.size() && index_by_small_id_[value] != 0) {
    return index_by_small_id_[value] - 1;
  }
  if (index_by_id_.empty()) return std::nullopt;
  const auto found = index_by_id_.find(id);
  if (found == index_by_id_.end()) return std::nullopt;
  return found->second;
}

void BufferTable::Free(BufferIndex index, uint64_t line) {
  BufferInfo& info = infos_[index];
  info.freed_line = line;
  LiveBytes& bytes = *live_[info.live_slot];
  bytes.touched.Clear();
  bytes.written.Clear();
  bytes.named_by = 0;
  free_slots_.push_back(info.live_slot);
}

void BufferTable::MarkWritten(BufferIndex index, ByteRange range) {
  LiveBytes& bytes = live(index);
  if (bytes.all_written) return;
  const ByteRange all{0, infos_[index].size_bytes};
  bytes.written.Add(range.Intersect(all));
  if (bytes.written.byte_count() < all.size()) return;
  bytes.all_written = true;
  bytes.written.Clear();
}

void BufferTable::ForgetTouched() {
  for (const uint32_t slot : touched_) {
    live_[slot]->touched.Clear();
    live_[slot]->in_touched_list = false;
  }
  touched_.clear();
}

void BufferTable::Join(LiveBytes& bytes, const Timeline& timeline) const {
  using Entry = RangeMap<ByteState>::Entry;
  const auto is_old = [&timeline](const ByteState& state) {
    return std::max(state.writer, state.reader) < timeline.ordering_from();
  };
  // Joined ranges must agree on what each rule of the host would say of them. Whether anyone uses
  // them is no question: an entry is there because someone in flight does.
  const auto agree = [&timeline](uint32_t a, uint32_t b) {
    return timeline.InFlight(a) == timeline.InFlight(b);
  };
  const auto exact_use = [](const ByteState& state) {
    return std::max(state.exact_writer, state.exact_reader);
  };
  bytes.touched.JoinNeighbours([&](Entry& left, const Entry& right) {
    ByteState& a = left.state;
    const ByteState& b = right.state;
    if (!is_old(a) || !is_old(b) || !agree(a.writer, b.writer) ||
        !agree(a.exact_writer, b.exact_writer) || !agree(exact_use(a), exact_use(b))) {
      return false;
    }
    a = ByteState{.writer = std::max(a.writer, b.writer),
                  .exact_writer = std::max(a.exact_writer, b.exact_writer),
                  .reader = std::max(a.reader, b.reader),
                  .exact_reader = std::max(a.exact_reader, b.exact_reader)};
    return true;
  });
  bytes.join_above = std::max(ranges_kept_apart_, 2 * bytes.touched.size());
}

}  // namespace assay::hazard
