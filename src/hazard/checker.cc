#include <utility>
#include <variant>

#include <fmt/format.h>

#include "hazard/checker_state.h"

namespace assay::hazard {

std::string_view Checker::State::KernelName(trace::KernelId kernel) const {
  const auto found = kernels.find(kernel);
  return found == kernels.end() ? std::string_view() : found->second;
}

Actor Checker::State::DispatchActor(uint32_t ordinal) const {
  const DispatchLog::Record* const record = log.Find(ordinal);
  if (record == nullptr) return {};
  return {.line = record->line,
          .command_buffer = record->command_buffer,
          .dispatch = record->dispatch,
          .kernel = KernelName(record->kernel)};
}

Status Checker::State::RequireOpen(bool open, std::string_view what) const {
  if (open == in_command_buffer) return {};
  return Fail(Malformed(
      fmt::format("A {} stands {} a command buffer.", what, open ? "outside" : "inside")));
}

Error Checker::State::Malformed(std::string_view message) const {
  return {ErrorCode::kFormat, "", fmt::format("Line {}: {}", line, message)};
}

Result<BufferIndex> Checker::State::FindBuffer(trace::BufferId id) const {
  if (const std::optional<BufferIndex> index = buffers.Find(id)) return *index;
  return Fail(Malformed(fmt::format("Buffer #{} was not made.", id.value())));
}

Status Checker::State::Take(const trace::BufferEvent& event) {
  if (buffers.Make(event, names->Intern(event.label), order.timeline().now)) return {};
  return Fail(Malformed(fmt::format("Buffer #{} is made a second time.", event.buffer.value())));
}

Status Checker::State::Take(const trace::KernelEvent& event) {
  if (kernels.emplace(event.kernel, names->Intern(event.name)).second) return {};
  return Fail(Malformed(fmt::format("Kernel k{} is made a second time.", event.kernel.value())));
}

Status Checker::State::Take(const trace::BeginEvent&) {
  ASSAY_TRY(RequireOpen(false, "begin"));
  in_command_buffer = true;
  dispatch_in_buffer = 0;
  barrier_in_buffer = 0;
  ++report.command_buffers;
  order.Begin();
  return {};
}

Status Checker::State::Take(const trace::BarrierEvent&) {
  ASSAY_TRY(RequireOpen(true, "barrier"));
  CloseGroup();
  order.Barrier();
  ++report.barriers.issued;
  ++barrier_in_buffer;
  open_barrier = {.line = line,
                  .command_buffer = report.command_buffers,
                  .barrier = barrier_in_buffer,
                  .after_dispatch = dispatch_in_buffer};
  return {};
}

Status Checker::State::Take(const trace::CommitEvent&) {
  ASSAY_TRY(RequireOpen(true, "commit"));
  CloseGroup();
  order.Commit();
  in_command_buffer = false;
  return {};
}

Status Checker::State::Take(const trace::WaitEvent&) {
  ASSAY_TRY(RequireOpen(false, "wait"));
  order.Wait();
  log.Clear();
  return {};
}

Status Checker::State::Take(const trace::RefusedEvent& event) {
  refusals.Add(event);
  return {};
}

void Checker::State::CloseGroup() {
  const uint32_t group_from = order.timeline().group_from;
  if (open_barrier.line != 0 && !order.barrier_needed()) {
    sink.AddRedundantBarrier(
        open_barrier, open_barrier.after_dispatch == 0 ? "" : DispatchActor(group_from - 1).kernel,
        DispatchActor(group_from).kernel);
  }
  open_barrier = {};

  const auto suggestion = [&](const GroupPlanner::Place& place) {
    return Suggestion{.before = DispatchActor(group_from + place.before),
                      .closes_certain = place.closes_certain,
                      .closes_possible = place.closes_possible};
  };
  const GroupPlanner::Plan plan = planner.Finish();
  if (plan.best && (!best_place || plan.best->ClosesMoreThan(*best_place))) {
    best_place = plan.best;
    report.best_suggestion = suggestion(*plan.best);
  }
  for (const GroupPlanner::Place& place : plan.least) sink.AddSuggestion(suggestion(place));
}

void Checker::State::PruneLog() {
  std::vector<uint32_t> named = {order.timeline().undeclared};
  buffers.ForAllTouched([&named](const ByteState& state) {
    named.insert(named.end(), {state.writer, state.exact_writer, state.reader, state.exact_reader});
  });
  log.Prune(order.timeline().previous_from, std::move(named));
}

// --- The public face

Checker::Checker(const Options& options) : state_(std::make_unique<State>(options)) {}
Checker::~Checker() = default;

Status Checker::Add(const trace::Event& event, uint64_t line) {
  state_->line = line;
  return std::visit([this](const auto& alternative) { return state_->Take(alternative); }, event);
}

Report Checker::Finish() {
  Report& report = state_->report;
  report.barriers.least = state_->order.least_barriers();
  state_->sink.Finish();
  Report refused;
  refused.refused = state_->refusals.Finish();
  if (refused.refused.empty()) return std::move(report);
  // What was found among buffers that are not known for certain must not be taken for a result.
  refused.command_buffers = report.command_buffers;
  refused.dispatches = report.dispatches;
  refused.barriers.issued = report.barriers.issued;
  return refused;
}

Result<Report> CheckTrace(const std::string& path, const Options& options) {
  Checker checker(options);
  return JudgeTrace(path, "checking", checker,
                    [&] { return trace::TraceReader::Open(path, {.stop = options.stop}); });
}

Result<Report> CheckTraceText(std::string_view text, std::string name, const Options& options) {
  Checker checker(options);
  return JudgeTrace(name, "checking", checker,
                    [&] { return trace::TraceReader::FromMemory(text, name); });
}

int ExitStatus(const Report& report, const Options& options) {
  if (!report.refused.empty()) return 2;
  return report.hazards() > 0 || (options.strict && report.possible > 0) ? 1 : 0;
}

}  // namespace assay::hazard
