#include "prove/aligned_streams.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/compare.h"
#include "assay/prove_report.h"

#include "base/counted.h"
#include "base/text.h"
#include "prove/marked_trace.h"

namespace assay::prove {
namespace {

using compare::Difference;
using compare::Verdict;

// A number of JavaScript holds these exactly; larger ones become strings.
std::string Number(uint64_t value) {
  constexpr uint64_t kMostExact = uint64_t{1} << 53;
  return value <= kMostExact ? fmt::format("{}", value) : fmt::format("\"{}\"", value);
}

std::string ExtentText(const Extent3& extent) {
  return fmt::format("{},{},{}", extent.x, extent.y, extent.z);
}

// Values by their text, each once.
class Interned final {
 public:
  int32_t Index(std::string text) {
    const auto [at, added] = indices_.try_emplace(std::move(text), order_.size());
    if (added) order_.push_back(&at->first);
    return static_cast<int32_t>(at->second);
  }
  std::string Json() const {
    std::string json = "[";
    for (const std::string* text : order_) {
      if (json.size() > 1) json += ',';
      json += *text;
    }
    return json + ']';
  }

 private:
  std::unordered_map<std::string, size_t> indices_;
  std::vector<const std::string*> order_;  // Keys of indices_, which stay where they are.
};

// The events of both sides as JSON.
class EventTable final {
 public:
  int32_t Index(const trace::Event& event) {
    return events_.Index(std::visit([this](const auto& each) { return this->Json(each); }, event));
  }
  std::string EventsJson() const { return events_.Json(); }
  std::string AccessesJson() const { return accesses_.Json(); }

 private:
  std::string Json(const trace::DispatchEvent& event) {
    std::string args;
    for (const std::byte byte : event.args) args += fmt::format("{:02x}", static_cast<int>(byte));
    std::string json = fmt::format("[0,{},{},{},{},{},\"{}\"", event.kernel.value(), event.grid.x,
                                   event.grid.y, event.grid.z, event.shared_bytes, args);
    for (const trace::BufferAccess& access : event.accesses) {
      json += fmt::format(",{}", accesses_.Index(AccessJson(access)));
    }
    return json + ']';
  }
  static std::string AccessJson(const trace::BufferAccess& access) {
    return fmt::format(
        "[{},{},{},{}]", 2 * static_cast<int>(access.access) + (access.exact ? 1 : 0),
        Number(access.buffer.value()), Number(access.range.begin), Number(access.range.end));
  }
  static std::string Use(int word, trace::BufferId buffer, ByteRange range) {
    return fmt::format("[{},{},{},{}]", word, Number(buffer.value()), Number(range.begin),
                       Number(range.end));
  }
  static std::string Json(const trace::BarrierEvent&) { return "[1]"; }
  static std::string Json(const trace::BeginEvent&) { return "[2]"; }
  static std::string Json(const trace::CommitEvent&) { return "[3]"; }
  static std::string Json(const trace::WaitEvent&) { return "[4]"; }
  static std::string Json(const trace::HostWriteEvent& event) {
    return Use(5, event.buffer, event.range);
  }
  static std::string Json(const trace::HostReadEvent& event) {
    return Use(6, event.buffer, event.range);
  }
  static std::string Json(const trace::FreeEvent& event) {
    return fmt::format("[7,{}]", Number(event.buffer.value()));
  }
  static std::string Json(const trace::BufferEvent& event) {
    return fmt::format("[8,{}]", Number(event.buffer.value()));
  }
  static std::string Json(const trace::KernelEvent& event) {
    return fmt::format("[9,{}]", event.kernel.value());
  }
  static std::string Json(const trace::MetaEvent& event) {
    return fmt::format("[10,{},{}]", PageString(event.key), PageString(event.value));
  }
  static std::string Json(const trace::RefusedEvent& event) {
    return fmt::format("[11,{},{}]", PageString(trace::RefusalName(event.reason)),
                       Number(event.count));
  }

  Interned events_, accesses_;
};

// One side: its events in order, and what its names stand for.
class SideStream final {
 public:
  static Result<SideStream> Open(const std::string& path) {
    SideStream side;
    ASSAY_ASSIGN_OR_RETURN(side.trace_.emplace(), MarkedTrace::Open(path));
    return side;
  }
  // Reads the next event; false at the end.
  Result<bool> Next() {
    ASSAY_ASSIGN_OR_RETURN(const bool more, trace_->Next());
    if (!more) return false;
    if (const auto* buffer = std::get_if<trace::BufferEvent>(&event())) {
      buffers_[buffer->buffer.value()] =
          fmt::format("[{},\"{}\",{}]", Number(buffer->size_bytes), BufferKindName(buffer->kind),
                      PageString(buffer->label));
    } else if (const auto* kernel = std::get_if<trace::KernelEvent>(&event())) {
      kernels_[kernel->kernel.value()] = fmt::format(
          "[{},\"{}\",\"{}\",{},{}]", PageString(kernel->name), kernel->digest,
          ExtentText(kernel->workgroup), PageString(kernel->spec), kernel->shared_bytes);
    } else if (std::holds_alternative<trace::DispatchEvent>(event())) {
      // The order of dispatches, as one number.
      order_ = order_ * 0x9E3779B97F4A7C15U + trace_->mark();
    }
    return true;
  }
  const trace::Event& event() const { return trace_->event(); }
  std::string_view text() const { return trace_->text(); }
  uint64_t line() const { return trace_->line(); }
  Mark mark() const { return trace_->mark(); }
  uint64_t order() const { return order_; }
  // All that a dispatch's kernel stands for, its code included.
  std::string KernelOf(const trace::DispatchEvent& dispatch) const {
    const auto found = kernels_.find(dispatch.kernel.value());
    return found == kernels_.end() ? std::string() : found->second;
  }
  std::string Json() const {
    return fmt::format("{{\"buffers\":{},\"kernels\":{}}}", Members(buffers_), Members(kernels_));
  }

 private:
  static std::string Members(const std::map<uint64_t, std::string>& members) {
    std::string json = "{";
    for (const auto& [number, value] : members) {
      json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", number, value);
    }
    return json + '}';
  }

  std::optional<MarkedTrace> trace_;
  std::map<uint64_t, std::string> buffers_, kernels_;
  uint64_t order_ = 0;
};

// Walks two traces along their differences.
class Aligner final {
 public:
  explicit Aligner(const StreamRequest& request) : request_(request) {}

  Result<std::string> Run() {
    const compare::Report report =
        compare::CompareTraces(request_.path_a, request_.path_b,
                               {.max_differences = kClassifiedDifferences, .stop = request_.stop});
    if (Stopped()) return Fail(ErrorCode::kCancelled, "", "The report was stopped by a signal.");
    if (report.verdict == Verdict::kRefused) return Changed(report.reason);
    const compare::Counts& counts = report.counts;
    whole_ = report.differences.size() == counts.changed + counts.only_in_a + counts.only_in_b;
    // Of identical traces one is enough.
    one_ = report.verdict == Verdict::kIdentical;
    ASSAY_ASSIGN_OR_RETURN(a_.emplace(), SideStream::Open(request_.path_a));
    if (!one_) {
      ASSAY_ASSIGN_OR_RETURN(b_.emplace(), SideStream::Open(request_.path_b));
    }
    for (const Difference& difference : report.differences) {
      ASSAY_ASSIGN_OR_RETURN(const bool more, AddEqualUpTo(difference));
      if (!more || Full()) break;
      ASSAY_TRY(AddDifference(difference));
    }
    if (whole_ && !Full()) ASSAY_TRY(AddRest());
    if (Stopped()) return Fail(ErrorCode::kCancelled, "", "The report was stopped by a signal.");
    FindMoves();
    if (Full() || !whole_) {
      cut_ = fmt::format("the page ends behind these rows; the traces have {} and {}",
                         report.lines_a, Counted(report.lines_b, "line"));
    }
    return Json();
  }

 private:
  // A row that one of the differences made.
  struct Seen {
    size_t row = 0;
    std::optional<Mark> mark_a, mark_b;
    bool dispatch = false;
  };

  bool Stopped() const { return request_.stop && request_.stop(); }
  bool Full() const { return kinds_.size() >= request_.max_rows; }
  tl::unexpected<Error> Changed(const std::string& reason) const {
    return Fail(ErrorCode::kIo, request_.path_a,
                fmt::format("The traces \"{}\" and \"{}\" changed while the report was made: {}",
                            request_.path_a, request_.path_b, reason));
  }

  void AddRow(RowKind kind, int32_t a, int32_t b) {
    kinds_ += static_cast<char>(kind);
    rows_a_.push_back(a);
    rows_b_.push_back(b);
  }

  // A row of the events that both sides read last.
  void AddEqual() {
    const int32_t index_a = events_.Index(a_->event());
    if (one_) return AddRow(RowKind::kSame, index_a, index_a);
    const int32_t index_b = events_.Index(b_->event());
    RowKind kind = a_->text() == b_->text() ? RowKind::kSame : RowKind::kNumbering;
    const auto* dispatch_a = std::get_if<trace::DispatchEvent>(&a_->event());
    const auto* dispatch_b = std::get_if<trace::DispatchEvent>(&b_->event());
    if (dispatch_a != nullptr && dispatch_b != nullptr &&
        a_->KernelOf(*dispatch_a) != b_->KernelOf(*dispatch_b)) {
      kind = RowKind::kKernel;
    }
    AddRow(kind, index_a, index_b);
  }

  // Reads both sides on. False at the end of both.
  Result<bool> NextOfBoth() {
    ASSAY_ASSIGN_OR_RETURN(const bool more_a, a_->Next());
    if (one_) return more_a;
    ASSAY_ASSIGN_OR_RETURN(const bool more_b, b_->Next());
    if (more_a != more_b) return Changed("they no longer end together.");
    return more_a;
  }

  Result<bool> AddEqualUpTo(const Difference& difference) {
    for (;;) {
      const bool there = difference.a.line > 0 ? a_->line() + 1 >= difference.a.line
                                               : b_->line() + 1 >= difference.b.line;
      if (there || Full()) return true;
      ASSAY_ASSIGN_OR_RETURN(const bool more, NextOfBoth());
      if (!more) return Changed("a difference lies behind their end.");
      AddEqual();
      if (kinds_.size() % 4096 == 0 && Stopped()) return false;
    }
  }

  Status AddRest() {
    for (;;) {
      ASSAY_ASSIGN_OR_RETURN(const bool more, NextOfBoth());
      if (!more) return {};
      // What comes behind the last row is read all the same: only the end says that all is whole.
      if (!Full()) AddEqual();
      if (kinds_.size() % 4096 == 0 && Stopped()) return {};
    }
  }

  Status AddDifference(const Difference& difference) {
    Seen seen{.row = kinds_.size(), .mark_a = {}, .mark_b = {}};
    int32_t index_a = -1, index_b = -1;
    const auto take = [&](SideStream* side, const compare::Place& place, std::optional<Mark>* mark,
                          int32_t* index) -> Status {
      if (place.line == 0) return {};
      ASSAY_ASSIGN_OR_RETURN(const bool more, side->Next());
      if (!more || side->line() != place.line) return Changed("a line is not where it was.");
      *mark = side->mark();
      *index = events_.Index(side->event());
      seen.dispatch = std::holds_alternative<trace::DispatchEvent>(side->event());
      return {};
    };
    ASSAY_TRY(take(&*a_, difference.a, &seen.mark_a, &index_a));
    ASSAY_TRY(take(&*b_, difference.b, &seen.mark_b, &index_b));
    const trace::Event& event = seen.mark_a ? a_->event() : b_->event();
    AddRow(KindOf(difference, event), index_a, index_b);
    seen_.push_back(seen);
    return {};
  }

  static RowKind KindOf(const Difference& difference, const trace::Event& event) {
    if (std::holds_alternative<trace::BarrierEvent>(event)) return RowKind::kBarrier;
    if (std::holds_alternative<trace::KernelEvent>(event)) return RowKind::kKernel;
    if (!std::holds_alternative<trace::DispatchEvent>(event)) return RowKind::kOther;
    if (difference.kind == Difference::Kind::kOnlyInA) return RowKind::kRemoved;
    if (difference.kind == Difference::Kind::kOnlyInB) return RowKind::kAdded;
    if (difference.field == "kernel") return RowKind::kKernel;
    if (difference.field == "grid") return RowKind::kGrid;
    if (difference.field == "args" || difference.field == "shared") return RowKind::kConstants;
    return RowKind::kBindings;
  }

  // A dispatch that both sides have, in different places, was moved.
  void FindMoves() {
    if (one_) return;
    // With the same dispatches in the same order it is a barrier that moved.
    const RowKind kind =
        a_->order() == b_->order() && whole_ && !Full() ? RowKind::kBarrier : RowKind::kMoved;
    std::unordered_map<Mark, std::vector<size_t>> in_a;
    for (auto seen = seen_.rbegin(); seen != seen_.rend(); ++seen) {
      if (seen->dispatch && seen->mark_a) in_a[*seen->mark_a].push_back(seen->row);
    }
    for (const Seen& seen : seen_) {
      if (!seen.dispatch || !seen.mark_b) continue;
      const auto found = in_a.find(*seen.mark_b);
      if (found == in_a.end() || found->second.empty()) continue;
      const size_t from = found->second.back();
      found->second.pop_back();
      kinds_[from] = kinds_[seen.row] = static_cast<char>(kind);
      moves_.push_back(from);
      moves_.push_back(seen.row);
    }
  }

  std::string Json() const {
    const bool same_rows = rows_a_ == rows_b_;
    const std::string side_a = a_->Json();
    const std::string side_b = one_ ? side_a : b_->Json();
    return fmt::format(
        "{{\"name\":{},\"kinds\":\"{}\",\"a\":[{}],\"b\":{},\"events\":{},\"accesses\":{},"
        "\"side_a\":{},\"side_b\":{},\"moves\":[{}],\"cut\":{}}}",
        PageString(request_.name), kinds_, fmt::join(rows_a_, ","),
        same_rows ? std::string("null") : fmt::format("[{}]", fmt::join(rows_b_, ",")),
        events_.EventsJson(), events_.AccessesJson(), side_a,
        side_a == side_b ? std::string("null") : side_b, fmt::join(moves_, ","), PageString(cut_));
  }

  const StreamRequest& request_;
  bool whole_ = true;  // Every difference is known.
  bool one_ = false;
  std::optional<SideStream> a_, b_;
  EventTable events_;
  std::string kinds_;
  std::vector<int32_t> rows_a_, rows_b_;
  std::vector<Seen> seen_;
  std::vector<size_t> moves_;
  std::string cut_;
};

}  // namespace

std::string PageString(std::string_view text) {
  const std::string json =
      nlohmann::json(Printable(text))
          .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  std::string out;
  for (const char byte : json) {
    if (byte == '<' || byte == '>' || byte == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      out += byte;
    }
  }
  return out;
}

Result<std::string> AlignedStreamsJson(const StreamRequest& request) {
  return Aligner(request).Run();
}

}  // namespace assay::prove
