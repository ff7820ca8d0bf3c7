// What one dispatch says: its pairs with earlier ones, its bindings, the bytes that it reads.
#include <limits>

#include <fmt/format.h>

#include "hazard/checker_state.h"

namespace assay::hazard {
namespace {

// Two bindings of a dispatch are compared pair by pair.
constexpr size_t kMaxAccesses = 4096;
constexpr uint32_t kMaxDispatches = std::numeric_limits<uint32_t>::max() - 1;

}  // namespace

Status Checker::State::Take(const trace::DispatchEvent& event) {
  ASSAY_TRY(RequireOpen(true, "dispatch"));
  if (order.timeline().now >= kMaxDispatches) {
    return Fail(ErrorCode::kUnsupported, "",
                fmt::format("Line {}: the trace has more dispatches than can be checked ({}).",
                            line, kMaxDispatches));
  }
  if (log.WantsPrune()) PruneLog();
  ++report.dispatches;
  ++dispatch_in_buffer;
  log.Append({.line = line,
              .command_buffer = report.command_buffers,
              .ordinal = order.timeline().now + 1,
              .dispatch = dispatch_in_buffer,
              .kernel = event.kernel});
  if (event.accesses.empty()) {
    order.UndeclaredDispatch(&pieces);
  } else {
    ASSAY_TRY(TakeDeclared(event));
  }
  if (!pieces.empty()) ReportPieces();
  return {};
}

Status Checker::State::TakeDeclared(const trace::DispatchEvent& event) {
  if (event.accesses.size() > kMaxAccesses) {
    return Fail(
        ErrorCode::kUnsupported, "",
        fmt::format("Line {}: the dispatch has more accesses ({}) than can be checked ({}).", line,
                    event.accesses.size(), kMaxAccesses));
  }
  const uint32_t ordinal = order.timeline().now + 1;
  tracked.clear();
  bool alone = true;
  int32_t binding = -1;
  for (const trace::BufferAccess& access : event.accesses) {
    ++binding;
    // A buffer without a name appears in refused traces only, whose findings do not count.
    if (access.buffer == trace::kUnnamedBuffer) continue;
    ASSAY_ASSIGN_OR_RETURN(const BufferIndex index, FindBuffer(access.buffer));
    if (!AdmitAccess(access, index, binding)) continue;
    LiveBytes& bytes = buffers.live(index);
    alone = alone && bytes.named_by != ordinal;
    bytes.named_by = ordinal;
    tracked.push_back({.buffer = index,
                       .bytes = &bytes,
                       .range = access.range,
                       .access = access.access,
                       .exact = access.exact});
  }
  if (!alone) CheckSelfOverlaps(event);
  CheckWritten(tracked);
  order.Dispatch(tracked, alone, &pieces);
  if (!order.overflowed()) return {};
  return Fail(ErrorCode::kUnsupported, "",
              fmt::format("Line {}: more than {} reads stand between two barriers.", line,
                          std::numeric_limits<uint32_t>::max()));
}

bool Checker::State::AdmitAccess(const trace::BufferAccess& access, BufferIndex index,
                                 int32_t binding) {
  if (access.range.empty()) return false;
  const BufferInfo& info = buffers.info(index);
  const bool inside = access.range.end <= info.size_bytes;
  if (inside && info.alive()) return true;
  Finding finding{.rule = info.alive() ? Rule::kOutOfBounds : Rule::kUseAfterFree,
                  .certain = access.exact,
                  .first = {.line = info.freed_line},
                  .second = DispatchActor(order.timeline().now + 1),
                  .second_binding = binding,
                  .range = access.range};
  sink.Add(finding, &info);
  return info.alive();
}

void Checker::State::CheckSelfOverlaps(const trace::DispatchEvent& event) {
  const auto count = static_cast<int32_t>(event.accesses.size());
  for (int32_t b = 1; b < count; ++b) {
    const trace::BufferAccess& second = event.accesses[static_cast<size_t>(b)];
    for (int32_t a = 0; a < b; ++a) {
      const trace::BufferAccess& first = event.accesses[static_cast<size_t>(a)];
      if (first.buffer != second.buffer || first.range == second.range ||
          !first.range.Overlaps(second.range) || !Conflicts(first.access, second.access) ||
          first.buffer == trace::kUnnamedBuffer) {
        continue;
      }
      const std::optional<BufferIndex> index = buffers.Find(first.buffer);
      if (!index || !buffers.info(*index).alive()) continue;
      const Actor actor = DispatchActor(order.timeline().now + 1);
      sink.Add({.rule = Rule::kSelfOverlap,
                .certain = first.exact && second.exact,
                .first = actor,
                .second = actor,
                .first_binding = a,
                .second_binding = b,
                .range = first.range.Intersect(second.range)},
               &buffers.info(*index));
    }
  }
}

// The bytes of `range` that nobody wrote and no note named.
void Checker::State::PieceUnwritten(BufferIndex index, ByteRange range, bool exact) {
  const BufferInfo& info = buffers.info(index);
  // A dispatch that may touch everything may have written all that was there.
  if (order.timeline().undeclared > info.made_after) return;
  range = range.Intersect({0, info.size_bytes});
  buffers.live(index).written.ForEachMissing(range, [&](ByteRange missing) {
    pieces.push_back({Rule::kNeverWritten, exact, 0, index, missing});
  });
}

void Checker::State::CheckWritten(std::span<const TrackedAccess> accesses) {
  for (const TrackedAccess& access : accesses) {
    if (access.bytes->all_written || !Reads(access.access)) continue;
    PieceUnwritten(access.buffer, access.range, access.exact);
  }
  // What a dispatch writes counts for the reads of later ones only; what was read is noted once.
  for (const TrackedAccess& access : accesses) {
    if (!access.bytes->all_written) buffers.MarkWritten(access.buffer, access.range);
  }
}

void Checker::State::ReportPieces() {
  MergePieces(&pieces);
  const Actor second = in_command_buffer ? DispatchActor(order.timeline().now) : Host();
  const uint32_t group_from = order.timeline().group_from;
  for (const Piece& piece : pieces) {
    const bool is_note = piece.rule == Rule::kNeverWritten;
    const bool counted =
        sink.Add({.rule = piece.rule,
                  .certain = piece.certain,
                  .first = is_note ? Actor{} : DispatchActor(piece.first),
                  .second = second,
                  .range = piece.range},
                 piece.buffer == kAllMemory ? nullptr : &buffers.info(piece.buffer));
    if (counted && in_command_buffer && !is_note) {
      planner.AddPair(piece.first - group_from, order.timeline().now - group_from, piece.certain);
    }
  }
  pieces.clear();
}

}  // namespace assay::hazard
