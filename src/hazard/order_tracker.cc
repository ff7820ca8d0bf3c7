#include "hazard/order_tracker.h"

#include <algorithm>
#include <limits>

namespace assay::hazard {

void OrderTracker::Begin() {
  OpenGroup();
  timeline_.previous_from = timeline_.group_from;
  timeline_.least_from = timeline_.group_from;
  previous_group_touches_ = false;
}

void OrderTracker::Barrier() {
  timeline_.previous_from = timeline_.group_from;
  previous_group_touches_ = group_touches_;
  OpenGroup();
}

void OrderTracker::OpenGroup() {
  timeline_.group_from = timeline_.now + 1;
  group_touches_ = false;
  barrier_needed_ = false;
  readers_.clear();
  touching_.clear();
}

void OrderTracker::Wait() {
  buffers_->ForgetTouched();
  timeline_.in_flight_from = timeline_.now + 1;
}

// The pair with the last writer. An inexact write may have left the bytes alone, so it does not
// hide an exact one behind it from an exact access.
inline void OrderTracker::CheckWriter(Rule rule, const TrackedAccess& access, ByteRange range,
                                      const ByteState& state) {
  if (!timeline_.InGroup(state.writer)) return;
  const bool exact_writer = state.writer == state.exact_writer;
  pieces_->push_back({rule, access.exact && exact_writer, state.writer, access.buffer, range});
  if (!exact_writer && access.exact && timeline_.InGroup(state.exact_writer)) {
    pieces_->push_back({rule, true, state.exact_writer, access.buffer, range});
  }
}

inline void OrderTracker::CheckRead(const TrackedAccess& access, ByteRange range,
                                    const ByteState& state) {
  if (state.writer >= timeline_.least_from) conflicts_since_least_ = true;
  if (state.writer < timeline_.previous_from) return;
  // A writer of the group before that a writer of this group hides was seen when the latter came.
  if (timeline_.InPreviousGroup(state.writer)) barrier_needed_ = true;
  CheckWriter(Rule::kReadAfterWrite, access, range, state);
}

inline void OrderTracker::CheckWrite(const TrackedAccess& access, ByteRange range,
                                     const ByteState& state) {
  const uint32_t newest = std::max(state.writer, state.reader);
  if (newest >= timeline_.least_from) conflicts_since_least_ = true;
  if (newest < timeline_.previous_from) return;
  if (timeline_.InPreviousGroup(state.writer) || timeline_.InPreviousGroup(state.reader) ||
      timeline_.InPreviousGroup(state.earlier_reader)) {
    barrier_needed_ = true;
  }
  CheckWriter(Rule::kWriteAfterWrite, access, range, state);
  if (!timeline_.InGroup(state.reader)) return;
  for (uint32_t at = state.readers; at != 0; at = readers_[at - 1].next) {
    const Reader& reader = readers_[at - 1];
    // Certain pairs look through inexact writes; possible ones end at the last write of any kind.
    const bool certain = access.exact && reader.exact;
    if (!certain && reader.ordinal <= state.writer) {
      if (!access.exact) break;
      continue;
    }
    pieces_->push_back({Rule::kWriteAfterRead, certain, reader.ordinal, access.buffer, range});
  }
}

inline void OrderTracker::Check(const TrackedAccess& access, ByteRange range,
                                const ByteState& state) {
  if (Reads(access.access)) CheckRead(access, range, state);
  if (Writes(access.access)) CheckWrite(access, range, state);
}

inline void OrderTracker::AddReader(bool exact, ByteState& state) {
  if (readers_.size() == std::numeric_limits<uint32_t>::max()) {
    overflowed_ = true;
    return;
  }
  const bool linked = timeline_.InGroup(state.reader);
  readers_.push_back({timeline_.now, linked ? state.readers : 0, exact});
  state.readers = static_cast<uint32_t>(readers_.size());
  if (!linked) state.earlier_reader = state.reader;
  state.reader = timeline_.now;
  if (exact) state.exact_reader = timeline_.now;
}

inline void OrderTracker::Read(const TrackedAccess& access) {
  access.bytes->touched.Update(
      access.range, [&](ByteRange, ByteState& state) { AddReader(access.exact, state); });
}

inline void OrderTracker::Write(const TrackedAccess& access) {
  const uint32_t now = timeline_.now;
  if (access.exact) {
    access.bytes->touched.Assign(access.range, {.writer = now, .exact_writer = now});
  } else {
    access.bytes->touched.Update(access.range,
                                 [now](ByteRange, ByteState& state) { state.writer = now; });
  }
}

inline void OrderTracker::CheckAndApply(const TrackedAccess& access) {
  if (Writes(access.access) && access.exact) {
    access.bytes->touched.ForEach(access.range, [&](const auto& entry) {
      Check(access, entry.range().Intersect(access.range), entry.state);
    });
    Write(access);
    return;
  }
  access.bytes->touched.Update(access.range, [&](ByteRange range, ByteState& state) {
    Check(access, range, state);
    if (Reads(access.access)) AddReader(access.exact, state);
    if (Writes(access.access)) state.writer = timeline_.now;
  });
}

void OrderTracker::Dispatch(std::span<const TrackedAccess> accesses, bool alone,
                            std::vector<Piece>* pieces) {
  ++timeline_.now;
  if (accesses.empty()) return;
  pieces_ = pieces;
  conflicts_since_least_ = timeline_.undeclared >= timeline_.least_from;
  if (timeline_.InPreviousGroup(timeline_.undeclared)) barrier_needed_ = true;
  if (timeline_.InGroup(timeline_.undeclared)) {
    pieces->push_back({Rule::kReadAfterWrite, false, timeline_.undeclared, kAllMemory, {}});
  }

  for (const TrackedAccess& access : accesses) buffers_->Touch(access.buffer, *access.bytes);
  if (alone) {
    for (const TrackedAccess& access : accesses) CheckAndApply(access);
  } else {
    // A dispatch does not conflict with itself: all of it is held against what came before, and
    // only then becomes part of it. Exact writes come last, since they wipe out the rest.
    for (const TrackedAccess& access : accesses) {
      access.bytes->touched.ForEach(access.range, [&](const auto& entry) {
        Check(access, entry.range().Intersect(access.range), entry.state);
      });
    }
    for (const TrackedAccess& access : accesses) {
      if (Reads(access.access)) Read(access);
    }
    for (const bool exact : {false, true}) {
      for (const TrackedAccess& access : accesses) {
        if (Writes(access.access) && access.exact == exact) Write(access);
      }
    }
  }
  for (const TrackedAccess& access : accesses) {
    buffers_->JoinOld(*access.bytes, timeline_);
  }
  touching_.push_back(timeline_.now);
  Touched();
}

void OrderTracker::UndeclaredDispatch(std::vector<Piece>* pieces) {
  ++timeline_.now;
  conflicts_since_least_ = last_touching_ >= timeline_.least_from;
  if (previous_group_touches_) barrier_needed_ = true;
  if (timeline_.InGroup(timeline_.undeclared)) {
    pieces->push_back({Rule::kWriteAfterWrite, false, timeline_.undeclared, kAllMemory, {}});
  }
  for (const uint32_t earlier : touching_) {
    pieces->push_back({Rule::kWriteAfterRead, false, earlier, kAllMemory, {}});
  }
  touching_.clear();
  timeline_.undeclared = timeline_.now;
  Touched();
}

void OrderTracker::Touched() {
  group_touches_ = true;
  last_touching_ = timeline_.now;
  if (!conflicts_since_least_) return;
  // Every barrier of a set that orders the pair ending here stands ahead of this dispatch; no place
  // orders more of the later pairs than the last one.
  ++least_barriers_;
  timeline_.least_from = timeline_.now;
}

}  // namespace assay::hazard
