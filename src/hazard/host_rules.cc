// What the host does: making room, reading and writing while command buffers are in flight.
#include <algorithm>

#include "hazard/checker_state.h"

namespace assay::hazard {
namespace {

// A dispatch in flight that touches some bytes, and whether it is sure to.
struct InFlightUse {
  uint32_t ordinal = 0;  // 0: none.
  bool certain = false;
};

InFlightUse WriterInFlight(const ByteState& state, const Timeline& timeline) {
  if (timeline.InFlight(state.exact_writer)) return {state.exact_writer, true};
  if (timeline.InFlight(state.writer)) return {state.writer, false};
  return {};
}

InFlightUse UserInFlight(const ByteState& state, const Timeline& timeline) {
  const uint32_t exact = std::max(state.exact_writer, state.exact_reader);
  if (timeline.InFlight(exact)) return {exact, true};
  const uint32_t any = std::max(state.writer, state.reader);
  if (timeline.InFlight(any)) return {any, false};
  return {};
}

}  // namespace

Result<std::optional<BufferIndex>> Checker::State::AdmitHostAccess(trace::BufferId id,
                                                                   ByteRange range) {
  ASSAY_TRY(RequireOpen(false, "host access"));
  if (id == trace::kUnnamedBuffer || range.empty()) return std::optional<BufferIndex>();
  ASSAY_ASSIGN_OR_RETURN(const BufferIndex index, FindBuffer(id));
  const BufferInfo& info = buffers.info(index);
  if (!info.alive()) {
    sink.Add({.rule = Rule::kUseAfterFree,
              .first = {.line = info.freed_line},
              .second = Host(),
              .range = range},
             &info);
    return std::optional<BufferIndex>();
  }
  if (range.end > info.size_bytes) {
    sink.Add({.rule = Rule::kOutOfBounds, .second = Host(), .range = range}, &info);
  }
  return std::optional<BufferIndex>(index);
}

void Checker::State::PieceInFlight(Rule rule, BufferIndex index, ByteRange range) {
  const Timeline& timeline = order.timeline();
  buffers.live(index).touched.ForEach(range, [&](const auto& entry) {
    const InFlightUse use = rule == Rule::kHostRead ? WriterInFlight(entry.state, timeline)
                                                    : UserInFlight(entry.state, timeline);
    if (use.ordinal == 0) return;
    pieces.push_back({rule, use.certain, use.ordinal, index, entry.range().Intersect(range)});
  });
  if (UndeclaredInFlight(index)) {
    pieces.push_back({rule, false, timeline.undeclared, index, range});
  }
}

bool Checker::State::UndeclaredInFlight(BufferIndex index) const {
  const Timeline& timeline = order.timeline();
  return timeline.InFlight(timeline.undeclared) &&
         timeline.undeclared > buffers.info(index).made_after;
}

Status Checker::State::Take(const trace::HostReadEvent& event) {
  ASSAY_ASSIGN_OR_RETURN(const std::optional<BufferIndex> index,
                         AdmitHostAccess(event.buffer, event.range));
  if (!index) return {};
  PieceInFlight(Rule::kHostRead, *index, event.range);
  if (!buffers.live(*index).all_written) {
    PieceUnwritten(*index, event.range, true);
    buffers.MarkWritten(*index, event.range);
  }
  if (!pieces.empty()) ReportPieces();
  return {};
}

Status Checker::State::Take(const trace::HostWriteEvent& event) {
  ASSAY_ASSIGN_OR_RETURN(const std::optional<BufferIndex> index,
                         AdmitHostAccess(event.buffer, event.range));
  if (!index) return {};
  PieceInFlight(Rule::kHostWrite, *index, event.range);
  buffers.MarkWritten(*index, event.range);
  if (!pieces.empty()) ReportPieces();
  return {};
}

Status Checker::State::Take(const trace::FreeEvent& event) {
  ASSAY_TRY(RequireOpen(false, "free"));
  ASSAY_ASSIGN_OR_RETURN(const BufferIndex index, FindBuffer(event.buffer));
  const BufferInfo& info = buffers.info(index);
  if (!info.alive()) {
    sink.Add({.rule = Rule::kDoubleFree,
              .first = {.line = info.freed_line},
              .second = Host(),
              .range = {0, info.size_bytes}},
             &info);
    return {};
  }
  InFlightUse last;
  buffers.live(index).touched.ForAll([&](const auto& entry) {
    const InFlightUse use = UserInFlight(entry.state, order.timeline());
    if (use.ordinal == 0 || (last.certain && !use.certain)) return;
    if (use.certain == last.certain && use.ordinal <= last.ordinal) return;
    last = use;
  });
  if (last.ordinal == 0 && UndeclaredInFlight(index)) {
    last = {order.timeline().undeclared, false};
  }
  if (last.ordinal != 0) {
    sink.Add({.rule = Rule::kFreeInFlight,
              .certain = last.certain,
              .first = DispatchActor(last.ordinal),
              .second = Host(),
              .range = {0, info.size_bytes}},
             &info);
  }
  buffers.Free(index, line);
  return {};
}

}  // namespace assay::hazard
