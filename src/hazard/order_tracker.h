// OrderTracker: which dispatches of a command buffer conflict, and which barriers their conflicts
// need (docs/hazards.md has the argument).
#ifndef ASSAY_HAZARD_ORDER_TRACKER_H_
#define ASSAY_HAZARD_ORDER_TRACKER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "assay/base.h"

#include "hazard/buffer_table.h"
#include "hazard/piece.h"
#include "hazard/timeline.h"

namespace assay::hazard {

// An access that is not empty, to a buffer alive.
struct TrackedAccess {
  BufferIndex buffer = 0;
  LiveBytes* bytes = nullptr;
  ByteRange range;
  Access access = Access::kRead;
  bool exact = true;
};

// One thread. The calls of a command buffer: Begin, then Dispatch... and Barrier, then Commit.
class OrderTracker final {
 public:
  explicit OrderTracker(BufferTable* buffers) : buffers_(buffers) {}

  const Timeline& timeline() const { return timeline_; }
  // The fewest barriers that would do for the command buffers so far.
  uint64_t least_barriers() const { return least_barriers_; }

  // True when dispatches of the open group conflict with the group before it, so that the barrier
  // between the two is needed.
  bool barrier_needed() const { return barrier_needed_; }

  void Begin();
  void Barrier();
  void Commit() { Begin(); }
  void Wait();

  // Takes the next dispatch and appends its unordered pairs to `pieces`. `alone` says that no two
  // accesses name one buffer.
  void Dispatch(std::span<const TrackedAccess> accesses, bool alone, std::vector<Piece>* pieces);
  // The same for a dispatch that declares nothing and so may touch everything.
  void UndeclaredDispatch(std::vector<Piece>* pieces);
  // True once the list of readers of one group is full; what came after it was not tracked.
  bool overflowed() const { return overflowed_; }

 private:
  struct Reader {
    uint32_t ordinal;
    uint32_t next;  // Index + 1 of the reader before; 0: none.
    bool exact;
  };

  void CheckRead(const TrackedAccess& access, ByteRange range, const ByteState& state);
  void CheckWrite(const TrackedAccess& access, ByteRange range, const ByteState& state);
  void CheckWriter(Rule rule, const TrackedAccess& access, ByteRange range, const ByteState& state);
  void Check(const TrackedAccess& access, ByteRange range, const ByteState& state);
  void AddReader(bool exact, ByteState& state);
  void Read(const TrackedAccess& access);
  void Write(const TrackedAccess& access);
  void CheckAndApply(const TrackedAccess& access);
  void Touched();
  void OpenGroup();

  BufferTable* buffers_;
  Timeline timeline_;
  std::vector<Reader> readers_;
  // The dispatches of the group since its latest undeclared one.
  std::vector<uint32_t> touching_;
  uint32_t last_touching_ = 0;
  bool group_touches_ = false;
  bool previous_group_touches_ = false;
  bool barrier_needed_ = false;
  bool conflicts_since_least_ = false;
  bool overflowed_ = false;
  uint64_t least_barriers_ = 0;
  std::vector<Piece>* pieces_ = nullptr;  // Of the dispatch being taken.
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_ORDER_TRACKER_H_
