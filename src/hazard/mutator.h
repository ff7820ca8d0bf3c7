// Mutator: what the check would say of a trace without one of its barriers, for every barrier, in
// one pass (docs/hazards.md, theorem 3: only pairs across the barrier from the group ahead of it to
// the group behind it matter).
//
// It holds the accesses of two groups and compares them, and shares no code with OrderTracker,
// which finds redundant barriers its own way.
#ifndef ASSAY_HAZARD_MUTATOR_H_
#define ASSAY_HAZARD_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/hazard.h"
#include "assay/trace.h"

#include "hazard/judge_trace.h"
#include "hazard/name_pool.h"
#include "hazard/range_map.h"

namespace assay::hazard {

// One thread.
class Mutator final {
 public:
  Mutator();
  Mutator(const Mutator&) = delete;
  Mutator& operator=(const Mutator&) = delete;

  // Events that a TraceReader delivers, with their lines. Error kFormat for any other.
  Status Add(const trace::Event& event, uint64_t line);
  // Once, after the last event.
  MutationReport Finish();

 private:
  // A dispatch of a group; its accesses lie in the group's list.
  struct GroupDispatch {
    Actor actor;
    size_t first_access = 0;
    size_t access_count = 0;
    bool undeclared = false;
    bool touches() const { return undeclared || access_count > 0; }
  };
  struct OpenGroup {
    std::vector<GroupDispatch> dispatches;
    std::vector<trace::BufferAccess> accesses;  // Of buffers alive, not empty.
    void Clear() {
      dispatches.clear();
      accesses.clear();
    }
  };
  // The dispatches of the group ahead that last used some bytes, counted from 1; 0: none.
  struct LastUses {
    uint32_t writer = 0;
    uint32_t exact_writer = 0;
    uint32_t reader = 0;
    uint32_t exact_reader = 0;
  };
  // Dispatches of the group ahead and of the group behind, counted from 1.
  struct Pair {
    uint32_t first = 0;
    uint32_t second = 0;
    bool certain = false;
  };
  struct BufferFacts {
    uint64_t size_bytes = 0;
    std::string_view label;
    bool alive = true;
  };

  Status Take(const trace::MetaEvent&) { return {}; }
  Status Take(const trace::BufferEvent& event);
  Status Take(const trace::FreeEvent& event);
  Status Take(const trace::KernelEvent& event);
  Status Take(const trace::BeginEvent&);
  Status Take(const trace::DispatchEvent& event);
  Status Take(const trace::BarrierEvent&);
  Status Take(const trace::CommitEvent&);
  Status Take(const trace::WaitEvent&) { return {}; }
  Status Take(const trace::HostWriteEvent&) { return {}; }
  Status Take(const trace::HostReadEvent&) { return {}; }
  Status Take(const trace::RefusedEvent& event);

  // Judges the barrier between the two groups.
  void CloseGroup();
  void IndexAhead();
  std::optional<Pair> FindPair() const;
  Pair LatestAhead(const GroupDispatch& dispatch, bool certain) const;
  Finding Describe(const Pair& pair) const;

  MutationReport report_;
  RefusalSentence refusals_;
  std::shared_ptr<NamePool> names_;
  std::unordered_map<trace::BufferId, BufferFacts> buffers_;
  std::unordered_map<trace::KernelId, std::string_view> kernels_;
  uint64_t line_ = 0;
  uint64_t dispatch_in_buffer_ = 0;
  uint64_t barrier_in_buffer_ = 0;
  std::optional<Mutant> barrier_;  // Between the two groups.
  OpenGroup ahead_;
  OpenGroup behind_;

  // Of `ahead_`, for FindPair.
  std::unordered_map<trace::BufferId, RangeMap<LastUses>> uses_;
  uint32_t last_undeclared_ = 0;
  uint32_t last_touching_ = 0;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_MUTATOR_H_
