// Checker::State: what the checker's parts share. checker.cc follows the trace's structure,
// dispatch_rules.cc judges dispatches, host_rules.cc what the host does.
#ifndef ASSAY_HAZARD_CHECKER_STATE_H_
#define ASSAY_HAZARD_CHECKER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/hazard.h"
#include "assay/trace.h"

#include "hazard/buffer_table.h"
#include "hazard/dispatch_log.h"
#include "hazard/finding_sink.h"
#include "hazard/group_planner.h"
#include "hazard/judge_trace.h"
#include "hazard/name_pool.h"
#include "hazard/order_tracker.h"
#include "hazard/piece.h"

namespace assay::hazard {

// Where the checker begins to forget what no rule needs.
struct CheckerLimits {
  // The touched ranges of one buffer that are kept apart in any case.
  size_t ranges_kept_apart = 1024;
  // The dispatches that are remembered in any case.
  size_t dispatches_kept = size_t{1} << 18;
};

struct Checker::State {
  explicit State(const Options& options, const CheckerLimits& limits = {})
      : buffers(limits.ranges_kept_apart),
        order(&buffers),
        log(limits.dispatches_kept),
        sink(options, &report),
        names(std::make_shared<NamePool>()) {
    report.names = names;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // One overload an event.
  Status Take(const trace::MetaEvent&) { return {}; }
  Status Take(const trace::BufferEvent& event);
  Status Take(const trace::FreeEvent& event);
  Status Take(const trace::KernelEvent& event);
  Status Take(const trace::BeginEvent&);
  Status Take(const trace::DispatchEvent& event);
  Status Take(const trace::BarrierEvent&);
  Status Take(const trace::CommitEvent&);
  Status Take(const trace::WaitEvent&);
  Status Take(const trace::HostWriteEvent& event);
  Status Take(const trace::HostReadEvent& event);
  Status Take(const trace::RefusedEvent& event);

  Status TakeDeclared(const trace::DispatchEvent& event);
  // False when the access has been dealt with: it is empty, or its buffer is no more.
  bool AdmitAccess(const trace::BufferAccess& access, BufferIndex index, int32_t binding);
  void CheckSelfOverlaps(const trace::DispatchEvent& event);
  void CheckWritten(std::span<const TrackedAccess> accesses);
  void PieceUnwritten(BufferIndex index, ByteRange range, bool exact);
  void ReportPieces();
  // Judges the barrier ahead of the open group and plans barriers for its pairs.
  void CloseGroup();
  void PruneLog();

  // The buffer of a host access; nullopt where there is nothing left to check.
  Result<std::optional<BufferIndex>> AdmitHostAccess(trace::BufferId id, ByteRange range);
  // The bytes of `range` that a command buffer in flight uses in conflict with a host access.
  void PieceInFlight(Rule rule, BufferIndex index, ByteRange range);
  bool UndeclaredInFlight(BufferIndex index) const;
  Result<BufferIndex> FindBuffer(trace::BufferId id) const;

  Actor Host() const { return {.line = line}; }
  Actor DispatchActor(uint32_t ordinal) const;
  std::string_view KernelName(trace::KernelId kernel) const;
  Status RequireOpen(bool open, std::string_view what) const;
  // An event that no TraceReader delivers.
  Error Malformed(std::string_view message) const;

  Report report;
  RefusalSentence refusals;
  BufferTable buffers;
  OrderTracker order;
  DispatchLog log;
  FindingSink sink;
  std::shared_ptr<NamePool> names;
  std::unordered_map<trace::KernelId, std::string_view> kernels;
  GroupPlanner planner;
  std::optional<GroupPlanner::Place> best_place;

  uint64_t line = 0;  // Of the event being taken.
  bool in_command_buffer = false;
  uint32_t dispatch_in_buffer = 0;
  uint64_t barrier_in_buffer = 0;
  // The barrier that opened the group; line 0: none.
  RedundantBarrier open_barrier;

  // Of the dispatch being taken; kept for their memory.
  std::vector<TrackedAccess> tracked;
  std::vector<Piece> pieces;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_CHECKER_STATE_H_
