#include "hazard/mutator.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace assay::hazard {
namespace {

Rule RuleOf(Access first, Access second) {
  if (!Writes(first)) return Rule::kWriteAfterRead;
  return Reads(second) ? Rule::kReadAfterWrite : Rule::kWriteAfterWrite;
}

}  // namespace

Mutator::Mutator() : names_(std::make_shared<NamePool>()) { report_.names = names_; }

Status Mutator::Add(const trace::Event& event, uint64_t line) {
  line_ = line;
  return std::visit([this](const auto& alternative) { return Take(alternative); }, event);
}

Status Mutator::Take(const trace::BufferEvent& event) {
  buffers_[event.buffer] = {
      .size_bytes = event.size_bytes, .label = names_->Intern(event.label), .alive = true};
  return {};
}

Status Mutator::Take(const trace::FreeEvent& event) {
  const auto found = buffers_.find(event.buffer);
  if (found != buffers_.end()) found->second.alive = false;
  return {};
}

Status Mutator::Take(const trace::KernelEvent& event) {
  kernels_.emplace(event.kernel, names_->Intern(event.name));
  return {};
}

Status Mutator::Take(const trace::BeginEvent&) {
  ++report_.command_buffers;
  dispatch_in_buffer_ = 0;
  barrier_in_buffer_ = 0;
  ahead_.Clear();
  behind_.Clear();
  return {};
}

Status Mutator::Take(const trace::DispatchEvent& event) {
  ++report_.dispatches;
  ++dispatch_in_buffer_;
  const auto kernel = kernels_.find(event.kernel);
  GroupDispatch dispatch{
      .actor = {.line = line_,
                .command_buffer = report_.command_buffers,
                .dispatch = dispatch_in_buffer_,
                .kernel = kernel == kernels_.end() ? std::string_view() : kernel->second},
      .first_access = behind_.accesses.size(),
      .access_count = 0,
      .undeclared = event.accesses.empty()};
  for (const trace::BufferAccess& access : event.accesses) {
    // A buffer without a name appears in refused traces only, whose mutants do not count.
    if (access.range.empty() || access.buffer == trace::kUnnamedBuffer) continue;
    const auto buffer = buffers_.find(access.buffer);
    if (buffer == buffers_.end()) {
      return Fail(ErrorCode::kFormat, "",
                  fmt::format("Line {}: Buffer #{} was not made.", line_, access.buffer.value()));
    }
    if (!buffer->second.alive) continue;
    behind_.accesses.push_back(access);
    ++dispatch.access_count;
  }
  behind_.dispatches.push_back(dispatch);
  return {};
}

Status Mutator::Take(const trace::BarrierEvent&) {
  CloseGroup();
  ++barrier_in_buffer_;
  barrier_ = Mutant{.line = line_,
                    .command_buffer = report_.command_buffers,
                    .barrier = barrier_in_buffer_,
                    .after_dispatch = dispatch_in_buffer_};
  return {};
}

Status Mutator::Take(const trace::CommitEvent&) {
  CloseGroup();
  return {};
}

Status Mutator::Take(const trace::RefusedEvent& event) {
  refusals_.Add(event);
  return {};
}

void Mutator::CloseGroup() {
  if (barrier_) {
    IndexAhead();
    if (const std::optional<Pair> pair = FindPair()) {
      barrier_->pair = Describe(*pair);
      ++report_.killed;
      if (!pair->certain) ++report_.killed_possible;
    }
    report_.mutants.push_back(*std::exchange(barrier_, std::nullopt));
  }
  std::swap(ahead_, behind_);
  behind_.Clear();
}

void Mutator::IndexAhead() {
  uses_.clear();
  last_undeclared_ = 0;
  last_touching_ = 0;
  for (uint32_t number = 1; number <= ahead_.dispatches.size(); ++number) {
    const GroupDispatch& dispatch = ahead_.dispatches[number - 1];
    if (dispatch.undeclared) last_undeclared_ = number;
    if (dispatch.touches()) last_touching_ = number;
    for (size_t i = 0; i < dispatch.access_count; ++i) {
      const trace::BufferAccess& access = ahead_.accesses[dispatch.first_access + i];
      uses_[access.buffer].Update(access.range, [&](ByteRange, LastUses& last) {
        if (Writes(access.access)) last.writer = number;
        if (Writes(access.access) && access.exact) last.exact_writer = number;
        if (Reads(access.access)) last.reader = number;
        if (Reads(access.access) && access.exact) last.exact_reader = number;
      });
    }
  }
}

// The latest dispatch ahead that conflicts with `dispatch`; first is 0 when there is none.
Mutator::Pair Mutator::LatestAhead(const GroupDispatch& dispatch, bool certain) const {
  Pair latest{.first = 0, .second = 0, .certain = certain};
  if (dispatch.undeclared) {
    if (!certain) latest.first = last_touching_;
    return latest;
  }
  for (size_t i = 0; i < dispatch.access_count; ++i) {
    const trace::BufferAccess& access = behind_.accesses[dispatch.first_access + i];
    if (certain && !access.exact) continue;
    if (!certain) latest.first = std::max(latest.first, last_undeclared_);
    const auto uses = uses_.find(access.buffer);
    if (uses == uses_.end()) continue;
    uses->second.ForEach(access.range, [&](const auto& entry) {
      const LastUses& last = entry.state;
      latest.first = std::max(latest.first, certain ? last.exact_writer : last.writer);
      if (!Writes(access.access)) return;
      latest.first = std::max(latest.first, certain ? last.exact_reader : last.reader);
    });
  }
  return latest;
}

std::optional<Mutator::Pair> Mutator::FindPair() const {
  for (const bool certain : {true, false}) {
    for (uint32_t number = 1; number <= behind_.dispatches.size(); ++number) {
      Pair pair = LatestAhead(behind_.dispatches[number - 1], certain);
      if (pair.first == 0) continue;
      pair.second = number;
      return pair;
    }
  }
  return std::nullopt;
}

Finding Mutator::Describe(const Pair& pair) const {
  const GroupDispatch& first = ahead_.dispatches[pair.first - 1];
  const GroupDispatch& second = behind_.dispatches[pair.second - 1];
  Finding finding{.rule = Rule::kReadAfterWrite,
                  .certain = pair.certain,
                  .first = first.actor,
                  .second = second.actor};
  if (first.undeclared || second.undeclared) {
    finding.rule = !first.undeclared   ? Rule::kWriteAfterRead
                   : second.undeclared ? Rule::kWriteAfterWrite
                                       : Rule::kReadAfterWrite;
    return finding;
  }
  // What a dispatch reads and writes itself is a pair by its write, as for the checker.
  for (const bool by_write : {true, false}) {
    for (size_t i = 0; i < second.access_count * first.access_count; ++i) {
      const trace::BufferAccess& ahead =
          ahead_.accesses[first.first_access + i % first.access_count];
      const trace::BufferAccess& behind =
          behind_.accesses[second.first_access + i / first.access_count];
      if (Writes(ahead.access) != by_write || ahead.buffer != behind.buffer ||
          !ahead.range.Overlaps(behind.range) || !Conflicts(ahead.access, behind.access) ||
          (pair.certain && !(ahead.exact && behind.exact))) {
        continue;
      }
      const BufferFacts& buffer = buffers_.at(ahead.buffer);
      finding.rule = RuleOf(ahead.access, behind.access);
      finding.buffer = ahead.buffer;
      finding.label = buffer.label;
      finding.buffer_bytes = buffer.size_bytes;
      finding.range = ahead.range.Intersect(behind.range);
      return finding;
    }
  }
  return finding;
}

MutationReport Mutator::Finish() {
  MutationReport refused;
  refused.refused = refusals_.Finish();
  if (refused.refused.empty()) return std::move(report_);
  refused.command_buffers = report_.command_buffers;
  refused.dispatches = report_.dispatches;
  return refused;
}

namespace {

// Mutates and checks in one reading, so that both say something of the same bytes.
class MutatorAndChecker final {
 public:
  Status Add(const trace::Event& event, uint64_t line) {
    ASSAY_TRY(mutator_.Add(event, line));
    return checker_.Add(event, line);
  }
  MutationReport Finish() {
    MutationReport report = mutator_.Finish();
    report.hazards = checker_.Finish().hazards();
    return report;
  }

 private:
  Mutator mutator_;
  Checker checker_{{.suppressions = {}, .max_listed = 0}};
};

}  // namespace

Result<MutationReport> MutateTrace(const std::string& path, const std::function<bool()>& stop) {
  MutatorAndChecker judge;
  return JudgeTrace(path, "mutating", judge,
                    [&] { return trace::TraceReader::Open(path, {.stop = stop}); });
}

Result<MutationReport> MutateTraceText(std::string_view text, std::string name) {
  MutatorAndChecker judge;
  return JudgeTrace(name, "mutating", judge,
                    [&] { return trace::TraceReader::FromMemory(text, name); });
}

}  // namespace assay::hazard
