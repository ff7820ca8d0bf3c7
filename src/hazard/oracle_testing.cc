#include "hazard/oracle_testing.h"

#include <algorithm>
#include <bit>
#include <map>

#include "assay/base.h"

namespace assay::hazard {
namespace {

constexpr uint64_t kBytes = 64;

struct OracleBuffer {
  uint64_t id = 0;
  uint64_t size = 0;
  uint64_t made_line = 0;
  uint64_t freed_line = 0;
  std::vector<bool> settled = std::vector<bool>(kBytes);  // Written, or noted as read.
};

struct OracleDispatch {
  uint64_t line = 0;
  size_t command_buffer = 0;
  size_t barriers_before = 0;  // In its command buffer.
  bool undeclared = false;
  std::vector<trace::BufferAccess> accesses = {};  // Of buffers alive, not empty.
};

bool Covers(const trace::BufferAccess& access, uint64_t buffer, uint64_t byte) {
  return access.buffer.value() == buffer && access.range.begin <= byte && byte < access.range.end;
}

bool DispatchWrites(const OracleDispatch& d, uint64_t buffer, uint64_t byte, bool exact_only) {
  return std::any_of(d.accesses.begin(), d.accesses.end(), [&](const auto& access) {
    return Covers(access, buffer, byte) && access.access != Access::kRead &&
           (access.exact || !exact_only);
  });
}

bool DispatchReads(const OracleDispatch& d, uint64_t buffer, uint64_t byte, bool exact_only) {
  return std::any_of(d.accesses.begin(), d.accesses.end(), [&](const auto& access) {
    return Covers(access, buffer, byte) && access.access != Access::kWrite &&
           (access.exact || !exact_only);
  });
}

bool TouchesAnything(const OracleDispatch& d) { return d.undeclared || !d.accesses.empty(); }

bool InConflict(const OracleDispatch& a, const OracleDispatch& b) {
  if (!TouchesAnything(a) || !TouchesAnything(b)) return false;
  if (a.undeclared || b.undeclared) return true;
  for (const auto& x : a.accesses) {
    for (const auto& y : b.accesses) {
      if (x.buffer == y.buffer &&
          std::max(x.range.begin, y.range.begin) < std::min(x.range.end, y.range.end) &&
          (x.access != Access::kRead || y.access != Access::kRead)) {
        return true;
      }
    }
  }
  return false;
}

class Oracle {
 public:
  explicit Oracle(std::span<const trace::Event> events) : events_(events) {}

  PlainReport Run() {
    for (size_t i = 0; i < events_.size(); ++i) {
      line_ = i + 1;
      std::visit([this](const auto& event) { Take(event); }, events_[i]);
    }
    return report_;
  }

 private:
  // What one byte of one pair is.
  enum class Certainty { kNone, kPossible, kCertain };

  template <typename Event>
  void Take(const Event&) {}

  void Take(const trace::BufferEvent& event) {
    OracleBuffer buffer{.id = event.buffer.value(), .size = event.size_bytes, .made_line = line_};
    if (!event.digest.empty()) buffer.settled.assign(kBytes, true);
    buffers_[buffer.id] = buffer;
  }
  void Take(const trace::BeginEvent&) {
    ++command_buffer_;
    open_.clear();
    barrier_lines_.clear();
  }
  void Take(const trace::BarrierEvent&) { barrier_lines_.push_back(line_); }
  void Take(const trace::CommitEvent&) {
    JudgePairs();
    JudgeBarriers();
    in_flight_.insert(in_flight_.end(), open_.begin(), open_.end());
  }
  void Take(const trace::WaitEvent&) { in_flight_.clear(); }

  void Take(const trace::DispatchEvent& event) {
    OracleDispatch dispatch{.line = line_,
                            .command_buffer = command_buffer_,
                            .barriers_before = barrier_lines_.size(),
                            .undeclared = event.accesses.empty()};
    const auto& all = event.accesses;
    for (size_t b = 0; b < all.size(); ++b) {
      if (all[b].range.begin >= all[b].range.end) continue;
      OracleBuffer& buffer = buffers_.at(all[b].buffer.value());
      if (buffer.freed_line != 0) {
        Find(Rule::kUseAfterFree, all[b].exact, buffer.freed_line, buffer.id, all[b].range, -1,
             static_cast<int32_t>(b));
        continue;
      }
      if (all[b].range.end > buffer.size) {
        Find(Rule::kOutOfBounds, all[b].exact, 0, buffer.id, all[b].range, -1,
             static_cast<int32_t>(b));
      }
      for (size_t a = 0; a < b; ++a) {
        const uint64_t begin = std::max(all[a].range.begin, all[b].range.begin);
        const uint64_t end = std::min(all[a].range.end, all[b].range.end);
        const bool writes = all[a].access != Access::kRead || all[b].access != Access::kRead;
        if (all[a].buffer == all[b].buffer && begin < end && writes &&
            all[a].range != all[b].range) {
          Find(Rule::kSelfOverlap, all[a].exact && all[b].exact, line_, buffer.id, {begin, end},
               static_cast<int32_t>(a), static_cast<int32_t>(b));
        }
      }
      dispatch.accesses.push_back(all[b]);
      touched_end_ = std::max(touched_end_, all[b].range.end);
    }
    for (auto& [id, buffer] : buffers_) {
      std::vector<Certainty> bytes(kBytes, Certainty::kNone);
      for (uint64_t x = 0; x < buffer.size; ++x) {
        const bool reads = DispatchReads(dispatch, id, x, false);
        if (reads && !buffer.settled[x]) {
          bytes[x] =
              DispatchReads(dispatch, id, x, true) ? Certainty::kCertain : Certainty::kPossible;
        }
        if (reads || DispatchWrites(dispatch, id, x, false) || dispatch.undeclared) {
          buffer.settled[x] = true;
        }
      }
      FindRuns(Rule::kNeverWritten, 0, id, bytes);
    }
    open_.push_back(dispatch);
  }

  void Take(const trace::HostReadEvent& event) { TakeHost(event.buffer, event.range, false); }
  void Take(const trace::HostWriteEvent& event) { TakeHost(event.buffer, event.range, true); }

  void TakeHost(trace::BufferId id, ByteRange range, bool writes) {
    if (range.begin >= range.end) return;
    OracleBuffer& buffer = buffers_.at(id.value());
    if (buffer.freed_line != 0) {
      Find(Rule::kUseAfterFree, true, buffer.freed_line, buffer.id, range, -1, -1);
      return;
    }
    if (range.end > buffer.size) Find(Rule::kOutOfBounds, true, 0, buffer.id, range, -1, -1);
    const Rule rule = writes ? Rule::kHostWrite : Rule::kHostRead;
    std::map<uint64_t, std::vector<Certainty>> by_first;
    std::vector<Certainty> unwritten(kBytes, Certainty::kNone);
    for (uint64_t x = range.begin; x < range.end; ++x) {
      uint64_t certain_line = 0;
      uint64_t possible_line = 0;
      for (const OracleDispatch& d : in_flight_) {
        const auto uses = [&](bool exact) {
          return DispatchWrites(d, buffer.id, x, exact) ||
                 (writes && DispatchReads(d, buffer.id, x, exact));
        };
        if (uses(true)) certain_line = d.line;
        if (uses(false)) possible_line = d.line;
      }
      if (possible_line != 0) {
        std::vector<Certainty>& bytes = by_first[certain_line != 0 ? certain_line : possible_line];
        bytes.resize(kBytes);
        bytes[x] = certain_line != 0 ? Certainty::kCertain : Certainty::kPossible;
      }
      if (x < buffer.size && !buffer.settled[x]) {
        if (!writes) unwritten[x] = Certainty::kCertain;
        buffer.settled[x] = true;
      }
    }
    for (const auto& [first, bytes] : by_first) FindRuns(rule, first, buffer.id, bytes);
    FindRuns(Rule::kNeverWritten, 0, buffer.id, unwritten);
    if (const uint64_t undeclared = UndeclaredInFlight(buffer)) {
      Find(rule, false, undeclared, buffer.id, range, -1, -1);
    }
  }

  void Take(const trace::FreeEvent& event) {
    OracleBuffer& buffer = buffers_.at(event.buffer.value());
    const ByteRange all{0, buffer.size};
    if (buffer.freed_line != 0) {
      Find(Rule::kDoubleFree, true, buffer.freed_line, buffer.id, all, -1, -1);
      return;
    }
    uint64_t certain_line = 0;
    uint64_t possible_line = 0;
    for (const OracleDispatch& d : in_flight_) {
      for (const auto& access : d.accesses) {
        if (access.buffer.value() != buffer.id) continue;
        possible_line = d.line;
        if (access.exact) certain_line = d.line;
      }
    }
    if (certain_line != 0) {
      Find(Rule::kFreeInFlight, true, certain_line, buffer.id, all, -1, -1);
    } else if (possible_line != 0) {
      Find(Rule::kFreeInFlight, false, possible_line, buffer.id, all, -1, -1);
    } else if (const uint64_t undeclared = UndeclaredInFlight(buffer)) {
      Find(Rule::kFreeInFlight, false, undeclared, buffer.id, all, -1, -1);
    }
    buffer.freed_line = line_;
  }

  uint64_t UndeclaredInFlight(const OracleBuffer& buffer) const {
    uint64_t last = 0;
    for (const OracleDispatch& d : in_flight_) {
      if (d.undeclared && d.line > buffer.made_line) last = d.line;
    }
    return last;
  }

  void JudgePairs() {
    for (size_t j = 0; j < open_.size(); ++j) {
      line_of_second_ = open_[j].line;
      for (size_t i = 0; i < j; ++i) {
        if (open_[i].barriers_before != open_[j].barriers_before) continue;
        JudgeUndeclared(i, j);
        for (const auto& [id, buffer] : buffers_) {
          for (const Rule rule :
               {Rule::kReadAfterWrite, Rule::kWriteAfterRead, Rule::kWriteAfterWrite}) {
            std::vector<Certainty> bytes(kBytes, Certainty::kNone);
            for (uint64_t x = 0; x < touched_end_; ++x) {
              if (IsImmediate(rule, i, j, id, x, false)) bytes[x] = Certainty::kPossible;
              if (IsImmediate(rule, i, j, id, x, true)) bytes[x] = Certainty::kCertain;
            }
            FindRuns(rule, open_[i].line, id, bytes);
          }
        }
      }
    }
    line_of_second_ = 0;
  }

  bool IsImmediate(Rule rule, size_t i, size_t j, uint64_t id, uint64_t x, bool exact) const {
    const bool i_writes = DispatchWrites(open_[i], id, x, exact);
    const bool i_reads = DispatchReads(open_[i], id, x, exact);
    const bool j_writes = DispatchWrites(open_[j], id, x, exact);
    const bool j_reads = DispatchReads(open_[j], id, x, exact);
    const bool wanted = rule == Rule::kReadAfterWrite   ? i_writes && j_reads
                        : rule == Rule::kWriteAfterRead ? i_reads && !i_writes && j_writes
                                                        : i_writes && j_writes;
    if (!wanted) return false;
    for (size_t k = i + 1; k < j; ++k) {
      if (DispatchWrites(open_[k], id, x, exact)) return false;
    }
    return true;
  }

  void JudgeUndeclared(size_t i, size_t j) {
    const OracleDispatch& a = open_[i];
    const OracleDispatch& b = open_[j];
    if (!(a.undeclared || b.undeclared) || !TouchesAnything(a) || !TouchesAnything(b)) return;
    for (size_t k = i + 1; k < j; ++k) {
      if (open_[k].undeclared) return;
    }
    const Rule rule = a.undeclared && b.undeclared ? Rule::kWriteAfterWrite
                      : a.undeclared               ? Rule::kReadAfterWrite
                                                   : Rule::kWriteAfterRead;
    report_.findings.insert({rule, false, a.line, b.line, -1, 0, 0, -1, -1});
  }

  // The number of conflicting pairs that no barrier orders, when barriers stand ahead of the
  // dispatches where `barrier_before` says so.
  template <typename BarriersBefore>
  uint64_t UnorderedPairs(BarriersBefore&& barriers_before) const {
    uint64_t count = 0;
    for (size_t j = 0; j < open_.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        if (barriers_before(i) == barriers_before(j) && InConflict(open_[i], open_[j])) ++count;
      }
    }
    return count;
  }

  void JudgeBarriers() {
    const uint64_t issued = UnorderedPairs([this](size_t i) { return open_[i].barriers_before; });
    for (size_t b = 0; b < barrier_lines_.size(); ++b) {
      const uint64_t without = UnorderedPairs([this, b](size_t i) {
        const size_t before = open_[i].barriers_before;
        return before > b ? before - 1 : before;
      });
      if (without == issued) report_.redundant_barrier_lines.insert(barrier_lines_[b]);
    }
    if (open_.size() < 2) return;
    int least = static_cast<int>(open_.size());
    const uint32_t places = 1U << (open_.size() - 1);
    for (uint32_t chosen = 0; chosen < places; ++chosen) {
      // Bit p: a barrier between dispatches p and p + 1.
      const uint64_t unordered =
          UnorderedPairs([chosen](size_t i) { return std::popcount(chosen & ((1U << i) - 1)); });
      if (unordered == 0) least = std::min(least, std::popcount(chosen));
    }
    report_.least_barriers += static_cast<uint64_t>(least);
  }

  void Find(Rule rule, bool certain, uint64_t first, uint64_t buffer, ByteRange range,
            int32_t first_binding, int32_t second_binding) {
    const uint64_t second = line_of_second_ != 0 ? line_of_second_ : line_;
    const PlainFinding finding{
        rule,        certain,   first,         second,        static_cast<int64_t>(buffer),
        range.begin, range.end, first_binding, second_binding};
    (rule == Rule::kNeverWritten ? report_.notes : report_.findings).insert(finding);
  }

  void FindRuns(Rule rule, uint64_t first, uint64_t buffer, const std::vector<Certainty>& bytes) {
    for (uint64_t begin = 0; begin < bytes.size();) {
      uint64_t end = begin;
      while (end < bytes.size() && bytes[end] == bytes[begin]) ++end;
      if (bytes[begin] != Certainty::kNone) {
        Find(rule, bytes[begin] == Certainty::kCertain, first, buffer, {begin, end}, -1, -1);
      }
      begin = end;
    }
  }

  std::span<const trace::Event> events_;
  uint64_t line_ = 0;
  uint64_t line_of_second_ = 0;
  size_t command_buffer_ = 0;
  std::map<uint64_t, OracleBuffer> buffers_;
  std::vector<OracleDispatch> open_;
  std::vector<uint64_t> barrier_lines_;
  std::vector<OracleDispatch> in_flight_;
  uint64_t touched_end_ = 0;
  PlainReport report_;
};

}  // namespace

PlainReport OracleCheck(std::span<const trace::Event> events) { return Oracle(events).Run(); }

PlainReport ToPlain(const Report& report) {
  PlainReport plain;
  const auto convert = [](const Finding& finding) {
    return PlainFinding{finding.rule,
                        finding.certain,
                        finding.first.line,
                        finding.second.line,
                        finding.buffer ? static_cast<int64_t>(finding.buffer->value()) : -1,
                        finding.range.begin,
                        finding.range.end,
                        finding.first_binding,
                        finding.second_binding};
  };
  for (const Finding& finding : report.findings) plain.findings.insert(convert(finding));
  for (const Finding& note : report.notes) plain.notes.insert(convert(note));
  for (const RedundantBarrier& barrier : report.redundant_barriers) {
    plain.redundant_barrier_lines.insert(barrier.line);
  }
  plain.least_barriers = report.barriers.least;
  return plain;
}

std::ostream& operator<<(std::ostream& out, const PlainFinding& finding) {
  return out << RuleName(finding.rule) << (finding.certain ? " certain" : " possible") << " line "
             << finding.first_line << " -> " << finding.second_line << " #" << finding.buffer
             << " [" << finding.begin << "," << finding.end << ") bindings "
             << finding.first_binding << " " << finding.second_binding;
}

std::ostream& operator<<(std::ostream& out, const PlainReport& report) {
  for (const PlainFinding& finding : report.findings) out << finding << "\n";
  for (const PlainFinding& note : report.notes) out << note << "\n";
  for (const uint64_t line : report.redundant_barrier_lines) out << "redundant " << line << "\n";
  return out << "least " << report.least_barriers << "\n";
}

}  // namespace assay::hazard
