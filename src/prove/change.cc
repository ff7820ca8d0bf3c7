#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "assay/hazard.h"
#include "assay/prove.h"
#include "assay/trace.h"

#include "base/counted.h"
#include "prove/marked_trace.h"
#include "prove/order_check.h"

namespace assay::prove {
namespace {

using compare::Difference;
using compare::Verdict;

constexpr uint64_t kContextLines = 3;
constexpr size_t kMostContextLines = 24;

// What is read of one side.
struct Side {
  uint64_t barriers = 0;
  uint64_t dispatches = 0;
  std::vector<uint64_t> barrier_at;                      // Dispatches ahead of each barrier.
  std::vector<Mark> order;                               // Of the dispatches.
  std::unordered_map<uint64_t, Mark> marks;              // Of the lines that differ.
  std::map<std::string, std::set<std::string>> kernels;  // What is declared under each name.
};

Result<Side> ReadSide(const std::string& path, const std::set<uint64_t>& lines) {
  ASSAY_ASSIGN_OR_RETURN(MarkedTrace trace, MarkedTrace::Open(path));
  Side side;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, trace.Next());
    if (!more) return side;
    if (lines.contains(trace.line())) side.marks[trace.line()] = trace.mark();
    if (std::holds_alternative<trace::BarrierEvent>(trace.event())) {
      ++side.barriers;
      side.barrier_at.push_back(side.dispatches);
    }
    if (const auto* kernel = std::get_if<trace::KernelEvent>(&trace.event())) {
      trace::KernelEvent plain = *kernel;
      plain.kernel = {};
      side.kernels[kernel->name].insert(FormatEvent(plain));
    }
    if (std::holds_alternative<trace::DispatchEvent>(trace.event())) {
      ++side.dispatches;
      side.order.push_back(trace.mark());
    }
  }
}

std::string_view WordOf(const compare::Place& place) {
  return std::string_view(place.text).substr(0, place.text.find(' '));
}

// Sorts the differences into kinds.
class Classifier final {
 public:
  Classifier(const compare::Report& report, const Side& a, const Side& b, Change* change)
      : report_(report), a_(a), b_(b), change_(change) {}

  void Run() {
    // A line that both sides have, in different places, was moved.
    for (const Difference& difference : report_.differences) {
      if (difference.a.line > 0) ++pool_[MarkA(difference)].first;
      if (difference.b.line > 0) ++pool_[MarkB(difference)].second;
    }
    for (auto& [mark, counts] : pool_) {
      counts.first = counts.second = std::min(counts.first, counts.second);
    }
    for (const Difference& difference : report_.differences) Take(difference);
    // A barrier that moved past a dispatch looks like a dispatch that moved past a barrier.
    if (a_.order == b_.order) BlameBarriers();
    AddKernels();
    AddBarriers();
  }

 private:
  Mark MarkA(const Difference& difference) const { return a_.marks.at(difference.a.line); }
  Mark MarkB(const Difference& difference) const { return b_.marks.at(difference.b.line); }
  void Add(ChangeKind kind) { kinds_.insert(kind); }
  // Takes one of the moved lines of a mark.
  static bool TakeOne(uint64_t* count) {
    if (*count == 0) return false;
    --*count;
    return true;
  }

  void Take(const Difference& difference) {
    const bool in_a = difference.a.line > 0;
    const bool in_b = difference.b.line > 0;
    const std::string_view word = WordOf(in_a ? difference.a : difference.b);
    if (word == "barrier") {
      barriers_a_ += in_a ? 1 : 0;
      barriers_b_ += in_b ? 1 : 0;
      return;
    }
    if (word == "kernel") return;  // AddKernels() looks at all of them.
    const bool moved_a = in_a && TakeOne(&pool_[MarkA(difference)].first);
    const bool moved_b = in_b && TakeOne(&pool_[MarkB(difference)].second);
    if (word == "dispatch") {
      TakeDispatch(difference, in_a && !moved_a, in_b && !moved_b);
      if (moved_b) {
        ++change_->dispatches_moved;
        Add(ChangeKind::kOrder);
      }
      return;
    }
    Add(word == "meta" ? ChangeKind::kMeta : ChangeKind::kHost);
  }

  void TakeDispatch(const Difference& difference, bool in_a, bool in_b) {
    const std::string& field = difference.field;
    if (in_a && in_b && field != "kernel") {
      if (field == "grid" || field == "args" || field == "shared") {
        ++change_->constants_changed;
        Add(ChangeKind::kConstants);
      } else {
        ++change_->bindings_changed;
        Add(ChangeKind::kBindings);
      }
      return;
    }
    if (in_a) {
      ++change_->dispatches_removed;
      Add(ChangeKind::kDispatchesRemoved);
    }
    if (in_b) {
      ++change_->dispatches_added;
      Add(ChangeKind::kDispatchesAdded);
    }
  }

  // All dispatches are the same in the same order: what moved are barriers, or the borders of
  // command buffers.
  void BlameBarriers() {
    std::vector<uint64_t> only;
    std::ranges::set_difference(a_.barrier_at, b_.barrier_at, std::back_inserter(only));
    barriers_a_ = only.size();
    only.clear();
    std::ranges::set_difference(b_.barrier_at, a_.barrier_at, std::back_inserter(only));
    barriers_b_ = only.size();
    const bool moved = kinds_.erase(ChangeKind::kOrder) > 0;
    change_->dispatches_moved = 0;
    if (moved && barriers_a_ == 0 && barriers_b_ == 0) Add(ChangeKind::kHost);
  }

  void AddKernels() {
    for (const auto& [name, declared] : a_.kernels) {
      const auto other = b_.kernels.find(name);
      if (other == b_.kernels.end()) {
        Add(ChangeKind::kKernelsRemoved);
      } else if (other->second != declared) {
        Add(ChangeKind::kKernelsChanged);
      }
    }
    for (const auto& [name, declared] : b_.kernels) {
      if (!a_.kernels.contains(name)) Add(ChangeKind::kKernelsAdded);
    }
  }

  void AddBarriers() {
    if (barriers_a_ > 0 && barriers_b_ > 0) Add(ChangeKind::kBarriersMoved);
    if (barriers_a_ > barriers_b_) Add(ChangeKind::kBarriersFewer);
    if (barriers_b_ > barriers_a_) Add(ChangeKind::kBarriersMore);
    // Kernels are numbered by their first use, so lines that differ in those numbers alone tell of
    // an order.
    if (kinds_.empty()) Add(ChangeKind::kOrder);
    change_->kinds.assign(kinds_.begin(), kinds_.end());
  }

  const compare::Report& report_;
  const Side& a_;
  const Side& b_;
  Change* change_;
  std::set<ChangeKind> kinds_;
  std::unordered_map<Mark, std::pair<uint64_t, uint64_t>> pool_;
  uint64_t barriers_a_ = 0, barriers_b_ = 0;
};

Status CheckOrder(const std::string& path_a, const Side& b, Change* change) {
  OrderCheck check(change->sides);
  for (const Mark mark : b.order) check.AddB(mark);
  ASSAY_ASSIGN_OR_RETURN(MarkedTrace trace, MarkedTrace::Open(path_a));
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, trace.Next());
    if (!more) break;
    if (const auto* dispatch = std::get_if<trace::DispatchEvent>(&trace.event())) {
      check.AddA(trace.mark(), trace.accesses(), trace.line(), trace.KernelName(*dispatch));
    }
  }
  change->order_legal = check.legal();
  change->order_conflict = check.conflict();
  return {};
}

std::optional<uint64_t> CountHazards(const std::string& path) {
  const Result<hazard::Report> report = hazard::CheckTrace(path, {});
  if (!report || !report->refused.empty()) return std::nullopt;
  return report->hazards();
}

// The lines [first, last] of a trace.
Result<std::map<uint64_t, std::string>> ReadLines(const std::string& path, uint64_t first,
                                                  uint64_t last) {
  ASSAY_ASSIGN_OR_RETURN(const auto reader, trace::TraceReader::Open(path));
  std::map<uint64_t, std::string> lines;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const std::optional<trace::Event> event, reader->Next());
    if (!event || reader->line_number() > last) return lines;
    if (reader->line_number() >= first) lines[reader->line_number()] = reader->line();
  }
}

// The first difference that is more than a fact of the run, or else the first, and those that
// follow it at once, with common lines around them.
Status AddContext(const std::string& path_a, const std::vector<Difference>& differences,
                  Change* change) {
  if (differences.empty()) return {};
  const auto matters = [](const Difference& difference) {
    return WordOf(difference.a.line > 0 ? difference.a : difference.b) != "meta";
  };
  auto shown = std::ranges::find_if(differences, matters);
  if (shown == differences.end()) shown = differences.begin();
  // What the differences ahead of it put between a common line's numbers in A and in B.
  int64_t ahead = 0;
  uint64_t after = 0;  // The last line of A that is not common.
  for (auto at = differences.begin(); at != shown; ++at) {
    ahead += (at->b.line > 0 ? 1 : 0) - (at->a.line > 0 ? 1 : 0);
    after = std::max(after, at->a.line);
  }
  const auto moved = [](uint64_t line, int64_t by) {
    return static_cast<uint64_t>(static_cast<int64_t>(line) + by);
  };
  uint64_t next_a = shown->a.line > 0 ? shown->a.line : moved(shown->b.line, -ahead);
  uint64_t next_b = shown->b.line > 0 ? shown->b.line : moved(next_a, ahead);
  const uint64_t start = next_a;
  const uint64_t first = std::max(start > kContextLines ? start - kContextLines : 1, after + 1);
  ASSAY_ASSIGN_OR_RETURN(const auto lines,
                         ReadLines(path_a, first, start + kMostContextLines + kContextLines));
  const auto common = [&](uint64_t a, uint64_t b) {
    const auto found = lines.find(a);
    if (found != lines.end()) change->context.push_back({' ', a, b, found->second});
  };
  for (uint64_t line = first; line < start; ++line) common(line, moved(line, ahead));
  for (const Difference& difference : std::span(shown, differences.end())) {
    const bool follows = (difference.a.line == 0 || difference.a.line == next_a) &&
                         (difference.b.line == 0 || difference.b.line == next_b);
    if (!follows || change->context.size() >= kMostContextLines) break;
    if (difference.a.line > 0) {
      change->context.push_back({'-', difference.a.line, 0, difference.a.text});
      next_a = difference.a.line + 1;
    }
    if (difference.b.line > 0) {
      change->context.push_back({'+', 0, difference.b.line, difference.b.text});
      next_b = difference.b.line + 1;
    }
  }
  for (uint64_t i = 0; i < kContextLines; ++i) common(next_a + i, next_b + i);
  return {};
}

}  // namespace

Result<Change> ClassifyChange(const std::string& path_a, const std::string& path_b,
                              const compare::Report& report) {
  Change change;
  change.sides = report.sides;
  if (report.verdict == Verdict::kIdentical || report.verdict == Verdict::kRefused) return change;
  change.buffers = report.buffers;
  change.buffers_renumbered = report.buffers_renumbered;
  std::set<uint64_t> lines_a, lines_b;
  for (const Difference& difference : report.differences) {
    lines_a.insert(difference.a.line);
    lines_b.insert(difference.b.line);
  }
  ASSAY_ASSIGN_OR_RETURN(const Side a, ReadSide(path_a, lines_a));
  ASSAY_ASSIGN_OR_RETURN(const Side b, ReadSide(path_b, lines_b));
  change.barriers_a = a.barriers;
  change.barriers_b = b.barriers;
  change.dispatches_a = a.dispatches;
  change.dispatches_b = b.dispatches;
  change.hazards_a = CountHazards(path_a);
  change.hazards_b = CountHazards(path_b);
  if (report.verdict == Verdict::kRenumbered) {
    change.kinds = {ChangeKind::kNumbering};
    return change;
  }
  Classifier(report, a, b, &change).Run();
  const compare::Counts& counts = report.counts;
  const uint64_t all = counts.changed + counts.only_in_a + counts.only_in_b;
  if (all > report.differences.size()) change.looked_at = report.differences.size();
  const bool order = std::ranges::count(change.kinds, ChangeKind::kOrder) > 0;
  const bool others = change.dispatches_added + change.dispatches_removed +
                          change.constants_changed + change.bindings_changed >
                      0;
  if (order && !others && !change.looked_at) ASSAY_TRY(CheckOrder(path_a, b, &change));
  ASSAY_TRY(AddContext(path_a, report.differences, &change));
  return change;
}

std::string FormatChange(const Change& change) {
  if (change.kinds.empty()) return "nothing changed\n";
  std::string text;
  const auto say = [&text](const std::string& sentence) { text += sentence + '\n'; };
  const bool only = change.kinds.size() == 1;
  const std::string_view alone = only ? ", and nothing else" : "";
  const std::string barriers = fmt::format("({} in {}, {} in {})", change.barriers_a,
                                           change.sides.a, change.barriers_b, change.sides.b);
  for (const ChangeKind kind : change.kinds) {
    switch (kind) {
      case ChangeKind::kNumbering:
        say(fmt::format("the numbers of {} of {}{}", change.buffers_renumbered,
                        Counted(change.buffers, "buffer"), alone));
        break;
      case ChangeKind::kBarriersFewer:
        say(fmt::format("{} fewer {}{}", Counted(change.barriers_a - change.barriers_b, "barrier"),
                        barriers, alone));
        break;
      case ChangeKind::kBarriersMore:
        say(fmt::format("{} more {}{}", Counted(change.barriers_b - change.barriers_a, "barrier"),
                        barriers, alone));
        break;
      case ChangeKind::kBarriersMoved:
        say(fmt::format("barriers in other places {}{}", barriers, alone));
        break;
      case ChangeKind::kOrder:
        say(fmt::format("dispatches in another order: {} moved{}", change.dispatches_moved, alone));
        break;
      case ChangeKind::kDispatchesAdded:
        say(fmt::format("dispatches added: {}{}", change.dispatches_added, alone));
        break;
      case ChangeKind::kDispatchesRemoved:
        say(fmt::format("dispatches removed: {}{}", change.dispatches_removed, alone));
        break;
      case ChangeKind::kConstants:
        say(fmt::format("constants, grids or shared memory changed: of dispatches {}{}",
                        change.constants_changed, alone));
        break;
      case ChangeKind::kBindings:
        say(fmt::format("buffers, ranges or accesses changed: of dispatches {}{}",
                        change.bindings_changed, alone));
        break;
      case ChangeKind::kKernelsAdded:
        say(fmt::format("kernels are used that {} does not use{}", change.sides.a, alone));
        break;
      case ChangeKind::kKernelsRemoved:
        say(fmt::format("kernels are not used that {} uses{}", change.sides.a, alone));
        break;
      case ChangeKind::kKernelsChanged:
        say(fmt::format("kernels have other code under the same name{}", alone));
        break;
      case ChangeKind::kHost:
        say(fmt::format("buffers, host accesses, waits or command buffers changed{}", alone));
        break;
      case ChangeKind::kMeta:
        say(fmt::format("the traces say different things of how they were recorded{}", alone));
        break;
    }
  }
  if (change.order_legal) {
    say(*change.order_legal
            ? "the new order is legal: no two dispatches that need an order exchanged theirs"
            : fmt::format("the new order is not legal: {}", change.order_conflict));
  } else if (change.dispatches_moved > 0) {
    say("whether the new order is legal was not asked, since dispatches changed as well");
  }
  if (change.hazards_a && change.hazards_b) {
    const auto hazards = [&](uint64_t count) {
      return count == 0 ? std::string("clean") : Counted(count, "hazard");
    };
    say(fmt::format("hazard check: {} {}, {} {}", change.sides.a, hazards(*change.hazards_a),
                    change.sides.b, hazards(*change.hazards_b)));
  }
  if (change.looked_at) {
    say(fmt::format("only the first {} were looked at", Counted(*change.looked_at, "difference")));
  }
  return text;
}

}  // namespace assay::prove
