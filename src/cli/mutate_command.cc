#include "cli/mutate_command.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/hazard.h"

#include "base/counted.h"
#include "cli/context_fit.h"
#include "cli/decode_rig.h"
#include "cli/engine_flags.h"
#include "cli/perturbation.h"
#include "hazard/describe.h"

namespace assay::cli {
namespace {

using nlohmann::ordered_json;

// What became of one barrier that was left out.
struct Verdict {
  int64_t depth = 0;            // Of a decode.
  uint64_t command_buffer = 0;  // Of a trace; 0: every pass of a decode.
  uint64_t barrier = 0;
  uint64_t line = 0;                         // Of a trace.
  std::optional<hazard::Finding> pair = {};  // What the checker finds.
  std::vector<std::string> schedules = {};   // Under which the bits of a decode differ.

  bool killed() const { return pair.has_value() || !schedules.empty(); }
};

class MutateCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override;
  Result<int> Run(Context& context) override;

 private:
  Status MutateTrace(Context& context);
  Status MutateModel(Context& context);
  Status MutateDepth(Context& context, DecodeRig& rig, const hazard::MutationReport& checked,
                     int64_t depth);
  void AddHazards(Context& context, uint64_t hazards);
  void Add(Context& context, Verdict verdict);
  void PrintVerdict(Context& context, const Verdict& verdict) const;
  static ordered_json Json(const Verdict& verdict);
  std::string Summary() const;

  EngineFlags engine_;
  std::string trace_;
  std::vector<int64_t> depths_ = {0};
  int64_t steps_ = 2;
  bool survivors_ = false;
  bool json_ = false;
  // The flags that mean nothing beside a trace, and whether they were given.
  std::deque<bool> given_;
  std::vector<std::pair<std::string, const bool*>> decode_flags_;

  uint64_t hazards_ = 0;                            // Of what is mutated, with all its barriers.
  std::vector<std::shared_ptr<const void>> names_;  // Of the pairs.
  ordered_json barriers_ = ordered_json::array();
  uint64_t dropped_ = 0;
  uint64_t by_checker_ = 0;
  uint64_t possible_ = 0;
  uint64_t by_schedules_ = 0;
  uint64_t only_checker_ = 0;
  uint64_t only_schedules_ = 0;
  uint64_t survived_ = 0;
  int status_ = kExitOk;
};

CommandSpec MutateCommand::Describe() {
  CommandSpec spec{
      .name = "mutate",
      .summary = "Leaves out each barrier in turn and says whether anything notices.",
      .description =
          "With a TRACE: says for each of its barriers whether `assay check` finds a pair of "
          "dispatches that only this barrier orders (KILLED, with the pair), or nothing "
          "(SURVIVED: the barrier is redundant). No device is needed.\n\n"
          "Without one: decodes with a model, leaves out each barrier of a decode step in turn (in "
          "all passes), and asks the checker and every schedule of `assay perturb`. A barrier that "
          "only the checker notices guards bytes that happen to be the same when they are "
          "stale.\n\n"
          "The last line of the text is for scripts: \"mutate: rc R; barriers B killed K survived "
          "S; checker C (possible P) schedules D; only checker E only schedules F; score X %\" (or "
          "\"score none\" where no barrier was left out, or the run failed).",
      .positionals = {{.name = "TRACE",
                       .value = TextValue{&trace_},
                       .help = "A trace; without it a decode is mutated.",
                       .required = false}},
      .flags = engine_.Flags(),
      .examples = {{"assay mutate run.trace", "Every barrier of a trace, by the checker."},
                   {"assay mutate", "Every barrier of a decode step of the built-in model."},
                   {"assay mutate -m model.gguf --json", "Another model, for programs."}},
      .exit_meanings = {{0, "Every barrier that was left out was missed."},
                        {1,
                         "A barrier survived: it is redundant. Or a schedule noticed what the "
                         "checker did not, or there are hazards with all barriers in place."},
                        {2, "The trace, the model or the device was refused or failed."}},
  };
  const auto add = [&](Flag flag) { spec.flags.push_back(std::move(flag)); };
  add(engine_.ThreadsFlag());
  for (Flag& flag : DecodePlanFlags(&depths_, &steps_)) add(std::move(flag));
  for (Flag& flag : spec.flags) {
    if (flag.given == nullptr) flag.given = &given_.emplace_back(false);
    decode_flags_.emplace_back(flag.names, flag.given);
  }
  add({.names = "--survivors",
       .value = SwitchValue{&survivors_},
       .help =
           "Lists only what is not right: barriers that survived, or that the checker missed."});
  add({.names = "--json",
       .value = SwitchValue{&json_},
       .help = "Prints one JSON object instead of text."});
  return spec;
}

Status MutateCommand::CheckArguments() {
  if (trace_.empty()) {
    ASSAY_TRY(engine_.Check());
    return CheckNamedOnce("--depth", depths_);
  }
  for (const auto& [names, given] : decode_flags_) {
    if (!*given) continue;
    return Fail(ErrorCode::kInvalidArgument, names,
                fmt::format("A trace is judged as it stands, and {} is for a decode; leave out one "
                            "of the two.",
                            names));
  }
  return {};
}

// A program that has hazards with all its barriers proves nothing of any of them.
void MutateCommand::AddHazards(Context& context, uint64_t hazards) {
  if (hazards == 0) return;
  hazards_ += hazards;
  status_ = kExitDifferent;
  if (json_) return;
  context.Print(fmt::format("{} with all its barriers already; `assay check` lists {}\n",
                            Counted(hazards, "hazard"), hazards == 1 ? "it" : "them"));
}

void MutateCommand::Add(Context& context, Verdict verdict) {
  ++dropped_;
  const bool by_schedule = !verdict.schedules.empty();
  by_schedules_ += by_schedule ? 1 : 0;
  if (verdict.pair) {
    ++by_checker_;
    possible_ += verdict.pair->certain ? 0 : 1;
    only_checker_ += by_schedule ? 0 : 1;
  } else {
    (by_schedule ? only_schedules_ : survived_) += 1;
    status_ = kExitDifferent;
  }
  if (survivors_ && verdict.pair) return;
  if (json_) {
    barriers_.push_back(Json(verdict));
  } else {
    PrintVerdict(context, verdict);
  }
}

void MutateCommand::PrintVerdict(Context& context, const Verdict& verdict) const {
  const std::string name =
      verdict.command_buffer == 0
          ? fmt::format("barrier {} at depth {}", verdict.barrier, verdict.depth)
          : fmt::format("barrier {} of command buffer {} (line {})", verdict.barrier,
                        verdict.command_buffer, verdict.line);
  if (!verdict.killed()) {
    context.Print(fmt::format("SURVIVED  {}: it orders nothing that the others do not\n", name));
    return;
  }
  std::string by = !verdict.pair           ? ""
                   : verdict.pair->certain ? "the checker"
                                           : "the checker (perhaps)";
  if (!verdict.schedules.empty()) {
    by += fmt::format("{}{}", by.empty() ? "" : ", ", fmt::join(verdict.schedules, ", "));
  }
  const bool live = verdict.command_buffer == 0;
  context.Print(fmt::format("KILLED    {}{}{}: {}\n", name, live ? " by " : "", live ? by : "",
                            verdict.pair ? hazard::Describe(*verdict.pair)
                                         : "the checker finds nothing, which is a fault of it"));
}

ordered_json MutateCommand::Json(const Verdict& verdict) {
  ordered_json json;
  if (verdict.command_buffer == 0) {
    json["depth"] = verdict.depth;
  } else {
    json["command_buffer"] = verdict.command_buffer;
    json["line"] = verdict.line;
  }
  json["barrier"] = verdict.barrier;
  json["killed"] = verdict.killed();
  json["checker"] = !verdict.pair ? "no" : verdict.pair->certain ? "certain" : "possible";
  if (verdict.command_buffer == 0) json["schedules"] = verdict.schedules;
  if (!verdict.pair) return json;
  const hazard::Finding& pair = *verdict.pair;
  const auto side = [](const hazard::Actor& actor) {
    return ordered_json{{"line", actor.line},
                        {"command_buffer", actor.command_buffer},
                        {"dispatch", actor.dispatch},
                        {"kernel", std::string(actor.kernel)}};
  };
  json["pair"] = {{"rule", hazard::RuleName(pair.rule)}, {"first", side(pair.first)},
                  {"second", side(pair.second)},         {"label", std::string(pair.label)},
                  {"begin", pair.range.begin},           {"end", pair.range.end}};
  return json;
}

Status MutateCommand::MutateTrace(Context& context) {
  ASSAY_ASSIGN_OR_RETURN(
      hazard::MutationReport report,
      SayStopped(hazard::MutateTrace(trace_, [&context] { return context.cancelled(); }),
                 "Stopped before the whole trace was read."));
  names_.push_back(report.names);
  if (!report.refused.empty()) return Fail(ErrorCode::kFormat, trace_, report.refused);
  if (!json_) {
    context.Print(fmt::format("{}: version {}, {}, {}, {}\n", report.name, report.version,
                              Counted(report.command_buffers, "command buffer"),
                              Counted(report.dispatches, "dispatch"),
                              Counted(report.mutants.size(), "barrier")));
    if (report.mutants.empty()) context.Print("there is no barrier to leave out\n");
  }
  AddHazards(context, report.hazards);
  for (hazard::Mutant& mutant : report.mutants) {
    Add(context, {.depth = 0,
                  .command_buffer = mutant.command_buffer,
                  .barrier = mutant.barrier,
                  .line = mutant.line,
                  .pair = std::move(mutant.pair),
                  .schedules = {}});
    if (context.print_failed()) break;
  }
  return {};
}

Status MutateCommand::MutateDepth(Context& context, DecodeRig& rig,
                                  const hazard::MutationReport& checked, int64_t depth) {
  DecodePlan plan{.depth = depth, .steps = steps_, .drop_barrier = 0};
  ASSAY_ASSIGN_OR_RETURN(const Baseline baseline, rig.RunRecorded(plan));
  auto progress = context.StartProgress(fmt::format("leaving out barriers at depth {}", depth),
                                        baseline.step_barriers, "barriers");
  const std::vector<gpu::Schedule> schedules = gpu::FixedSchedules(rig.info());
  for (uint64_t barrier = 1; barrier <= baseline.step_barriers; ++barrier) {
    Verdict verdict{.depth = depth, .command_buffer = 0, .barrier = barrier};
    // Of the passes, the last one that needs it says why.
    for (const hazard::Mutant& mutant : checked.mutants) {
      if (mutant.barrier == barrier && mutant.killed()) verdict.pair = mutant.pair;
    }
    plan.drop_barrier = barrier;
    for (const gpu::Schedule& schedule : schedules) {
      ASSAY_ASSIGN_OR_RETURN(const ScheduleOutcome outcome,
                             TrySchedule(rig, plan, baseline, schedule, /*find_pair=*/false));
      if (outcome.difference) verdict.schedules.push_back(gpu::FormatSchedule(schedule));
    }
    Add(context, std::move(verdict));
    progress.Update(barrier);
  }
  return {};
}

Status MutateCommand::MutateModel(Context& context) {
  ASSAY_ASSIGN_OR_RETURN(const auto file, OpenModel(engine_));
  ASSAY_ASSIGN_OR_RETURN(const llm::Config config, llm::ReadConfig(*file));
  for (const int64_t depth : depths_) {
    ASSAY_TRY(CheckFits(engine_, config, depth, StepsAfter(steps_)));
  }
  // Recorded first, each on a device of its own, so that only one model is in memory at a time.
  std::vector<hazard::MutationReport> checked;
  for (const int64_t depth : depths_) {
    ASSAY_ASSIGN_OR_RETURN(
        const std::string trace,
        RecordDecode(&context, engine_, file, {.depth = depth, .steps = steps_}));
    ASSAY_ASSIGN_OR_RETURN(hazard::MutationReport report,
                           hazard::MutateTraceText(trace, file->name()));
    if (!report.refused.empty()) return Fail(ErrorCode::kFormat, file->name(), report.refused);
    AddHazards(context, report.hazards);
    names_.push_back(report.names);
    checked.push_back(std::move(report));
  }
  ASSAY_ASSIGN_OR_RETURN(const auto rig, DecodeRig::Create(&context, engine_, file));
  for (size_t i = 0; i < depths_.size(); ++i) {
    ASSAY_TRY_WHILE(MutateDepth(context, *rig, checked[i], depths_[i]),
                    fmt::format("mutating depth {}", depths_[i]));
  }
  return {};
}

std::string MutateCommand::Summary() const {
  const uint64_t killed = dropped_ - survived_;
  // Of no barrier, and of a run that failed, there is none.
  const std::string score = dropped_ == 0 || status_ == kExitFailed
                                ? "none"
                                : fmt::format("{:.1f} %", 100.0 * static_cast<double>(killed) /
                                                              static_cast<double>(dropped_));
  return fmt::format(
      "mutate: rc {}; barriers {} killed {} survived {}; checker {} (possible {}) schedules {}; "
      "only checker {} only schedules {}; score {}",
      status_, dropped_, killed, survived_, by_checker_, possible_, by_schedules_,
      trace_.empty() ? only_checker_ : 0, only_schedules_, score);
}

Result<int> MutateCommand::Run(Context& context) {
  Status status = trace_.empty() ? MutateModel(context) : MutateTrace(context);
  if (!status) {
    if (status.error().code() == ErrorCode::kCancelled) return Fail(std::move(status).error());
    // So that a script finds the same last line whatever happened.
    context.PrintError(status.error().ToString());
    status_ = kExitFailed;
  }
  if (json_) {
    ordered_json json;
    if (!status) json["error"] = status.error().ToString();
    json["hazards"] = hazards_;
    json["barriers"] = std::move(barriers_);
    json["summary"] = Summary();
    json["rc"] = status_;
    context.Print(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  } else {
    context.Print(Summary() + "\n");
  }
  return status_;
}

}  // namespace

std::unique_ptr<Command> MakeMutateCommand() { return std::make_unique<MutateCommand>(); }

}  // namespace assay::cli
