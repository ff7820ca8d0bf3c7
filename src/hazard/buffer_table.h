// BufferTable: what the checker knows of each buffer, and of the bytes of those alive.
#ifndef ASSAY_HAZARD_BUFFER_TABLE_H_
#define ASSAY_HAZARD_BUFFER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/base.h"
#include "assay/trace.h"

#include "hazard/range_map.h"
#include "hazard/timeline.h"

namespace assay::hazard {

// The dispatches that last touched some bytes, as ordinals, since the host last waited. An exact
// write wipes out everything else: whatever conflicts with an older access conflicts with it too.
struct ByteState {
  uint32_t writer = 0;        // The last one.
  uint32_t exact_writer = 0;  // The last whose write is exact; at most `writer`.
  uint32_t reader = 0;
  uint32_t exact_reader = 0;
  // The last reader of a group before the group of `reader`.
  uint32_t earlier_reader = 0;
  // The readers since `exact_writer`, newest first, in OrderTracker's list. Says nothing when
  // `reader` is not of the open group.
  uint32_t readers = 0;
};

// The bytes of one buffer alive.
struct LiveBytes {
  // What dispatches touched since the host last waited.
  RangeMap<ByteState> touched;
  // What anyone wrote, and what was noted as read before; unused once `all_written`.
  ByteSet written;
  bool all_written = false;
  bool in_touched_list = false;
  uint32_t named_by = 0;  // The last dispatch that names the buffer.
  size_t join_above = 0;  // The number of entries of `touched` past which neighbours are joined.
};

// A place in the table, in the order in which the buffers were made.
using BufferIndex = uint32_t;

struct BufferInfo {
  trace::BufferId id;
  uint64_t size_bytes = 0;
  std::string_view label;
  BufferKind kind = BufferKind::kOther;
  // The last dispatch before it was made.
  uint32_t made_after = 0;
  uint32_t live_slot = 0;
  uint64_t freed_line = 0;  // 0: alive.

  bool alive() const { return freed_line == 0; }
};

// One thread.
class BufferTable final {
 public:
  // `ranges_kept_apart` is the number of touched ranges of a buffer that JoinOld() leaves alone.
  explicit BufferTable(size_t ranges_kept_apart) : ranges_kept_apart_(ranges_kept_apart) {}

  // `label` must outlive the table. False when there is a buffer of that name already.
  bool Make(const trace::BufferEvent& event, std::string_view label, uint32_t made_after);
  std::optional<BufferIndex> Find(trace::BufferId id) const;
  const BufferInfo& info(BufferIndex index) const { return infos_[index]; }
  // The buffer must be alive. The reference holds until the buffer is freed.
  LiveBytes& live(BufferIndex index) { return *live_[infos_[index].live_slot]; }
  const LiveBytes& live(BufferIndex index) const { return *live_[infos_[index].live_slot]; }
  void Free(BufferIndex index, uint64_t line);

  // Adds `range` to what was written, as far as it lies inside the buffer.
  void MarkWritten(BufferIndex index, ByteRange range);

  // To be called before `bytes.touched` changes.
  void Touch(BufferIndex index, LiveBytes& bytes) {
    if (bytes.in_touched_list) return;
    bytes.in_touched_list = true;
    touched_.push_back(infos_[index].live_slot);
  }
  // Forgets all touched ranges.
  void ForgetTouched();
  // Calls visit(const ByteState&) for each touched range.
  template <typename Visit>
  void ForAllTouched(Visit&& visit) const {
    for (const uint32_t slot : touched_) {
      live_[slot]->touched.ForAll([&visit](const auto& entry) { visit(entry.state); });
    }
  }
  // Where a buffer has very many touched ranges, joins those that only the rules of the host need,
  // which then name the last dispatch of the joined range.
  void JoinOld(LiveBytes& bytes, const Timeline& timeline) {
    if (bytes.touched.size() > bytes.join_above) Join(bytes, timeline);
  }

 private:
  void Join(LiveBytes& bytes, const Timeline& timeline) const;

  const size_t ranges_kept_apart_;
  std::vector<BufferInfo> infos_;
  // Small names, which are nearly all, index the vector (value + 1, 0: none).
  std::vector<BufferIndex> index_by_small_id_;
  std::unordered_map<trace::BufferId, BufferIndex> index_by_id_;
  std::vector<std::unique_ptr<LiveBytes>> live_;
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> touched_;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_BUFFER_TABLE_H_
