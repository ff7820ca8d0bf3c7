#include "cli/perturb_command.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/context_fit.h"
#include "cli/decode_rig.h"
#include "cli/engine_flags.h"
#include "cli/perturbation.h"
#include "gpu/schedule/scheduled_backend.h"

namespace assay::cli {
namespace {

using nlohmann::ordered_json;

// All that was tried at one depth.
struct DepthOutcome {
  DecodePlan plan;
  int64_t prefill_passes = 0;
  Baseline baseline;
  std::vector<ScheduleOutcome> schedules;
};

class PerturbCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override;
  Result<int> Run(Context& context) override;

 private:
  Status Perturb(Context& context);
  Result<DepthOutcome> PerturbDepth(Context& context, DecodeRig& rig, int64_t depth);
  // The pass that a command buffer holds, in words.
  std::string PassOf(const DepthOutcome& depth, uint64_t command_buffer) const;
  void PrintDepth(Context& context, const DepthOutcome& depth) const;
  void PrintPair(Context& context, const DepthOutcome& depth, const CulpritPair& pair) const;
  std::string Json(const std::string& summary, const std::string& error) const;
  ordered_json PairJson(const DepthOutcome& depth, const CulpritPair& pair) const;
  std::string Summary() const;

  EngineFlags engine_;
  std::vector<int64_t> depths_ = {0, 64};
  int64_t steps_ = 4;
  std::vector<std::string> schedule_words_;
  bool json_ = false;

  std::string model_name_;
  std::vector<gpu::Schedule> schedules_;
  std::vector<DepthOutcome> outcomes_;
  uint64_t runs_ = 0;
  int status_ = kExitOk;
};

CommandSpec PerturbCommand::Describe() {
  CommandSpec spec{
      .name = "perturb",
      .summary = "Decodes under adversarial schedules and compares the logits' bits.",
      .description =
          "Decodes in recorded order, one dispatch after another, and then the same ids under each "
          "schedule: what no barrier orders is reversed, shuffled, held back or mixed workgroup by "
          "workgroup. A program with all its barriers gives the same bits every time. Where bits "
          "differ, the difference is bisected to two dispatches whose order changes them, with the "
          "buffers and bytes that both declare.\n\n"
          "The last line of the text is for scripts: \"perturb: rc R; schedules S same A different "
          "D; depths N steps K; runs U\", counted over all depths.",
      .flags = engine_.Flags(),
      .examples = {{"assay perturb", "Proves the built-in model's decode under the fixed set."},
                   {"assay perturb -m model.gguf --depth 0,512 --steps 2 --json",
                    "Another model, for programs."},
                   {"assay perturb --drop-barrier 3",
                    "Plants a fault and names the dispatches that race."}},
      .exit_meanings = {{0, "The same bits under every schedule."},
                        {1, "A schedule changes bits."},
                        {2, "The model or the device was refused or failed."}},
  };
  const auto add = [&](Flag flag) { spec.flags.push_back(std::move(flag)); };
  add(engine_.ThreadsFlag());
  add(engine_.DropBarrierFlag());
  add({.names = "--schedule",
       .value = TextListValue{&schedule_words_},
       .placeholder = "ORDER",
       .help = "Tries this schedule in place of the fixed set: reversed, late-writes, random:SEED "
               "or interleaved[:SEED]. May be given again.",
       .show_default = false,
       .group = "order"});
  for (Flag& flag : DecodePlanFlags(&depths_, &steps_)) add(std::move(flag));
  add({.names = "--json",
       .value = SwitchValue{&json_},
       .help = "Prints one JSON object instead of text."});
  return spec;
}

Status PerturbCommand::CheckArguments() {
  ASSAY_TRY(engine_.Check());
  ASSAY_TRY(CheckNamedOnce("--depth", depths_));
  for (const std::string& word : schedule_words_) {
    const Result<gpu::Schedule> schedule = gpu::ParseSchedule(word);
    if (!schedule) {
      return Fail(ErrorCode::kInvalidArgument, "--schedule", schedule.error().message());
    }
    if (schedule->kind == gpu::ScheduleKind::kRecorded) {
      return Fail(ErrorCode::kInvalidArgument, "--schedule",
                  "The recorded order is what every schedule is compared with; give another one.");
    }
    schedules_.push_back(*schedule);
  }
  return {};
}

Result<DepthOutcome> PerturbCommand::PerturbDepth(Context& context, DecodeRig& rig, int64_t depth) {
  DepthOutcome outcome{.plan = {.depth = depth,
                                .steps = steps_,
                                .drop_barrier = static_cast<uint64_t>(engine_.drop_barrier)},
                       .prefill_passes = rig.PrefillPasses(depth),
                       .baseline = {},
                       .schedules = {}};
  auto progress = context.StartProgress(fmt::format("trying schedules at depth {}", depth),
                                        schedules_.size(), "schedules");
  ASSAY_ASSIGN_OR_RETURN(outcome.baseline, rig.RunRecorded(outcome.plan));
  for (const gpu::Schedule& schedule : schedules_) {
    ASSAY_ASSIGN_OR_RETURN(ScheduleOutcome tried, TrySchedule(rig, outcome.plan, outcome.baseline,
                                                              schedule, /*find_pair=*/true));
    if (tried.difference) status_ = kExitDifferent;
    outcome.schedules.push_back(std::move(tried));
    progress.Update(outcome.schedules.size());
  }
  return outcome;
}

Status PerturbCommand::Perturb(Context& context) {
  ASSAY_ASSIGN_OR_RETURN(const auto file, OpenModel(engine_));
  model_name_ = file->name();
  ASSAY_ASSIGN_OR_RETURN(const llm::Config config, llm::ReadConfig(*file));
  for (const int64_t depth : depths_) {
    ASSAY_TRY(CheckFits(engine_, config, depth, StepsAfter(steps_)));
  }
  ASSAY_TRY(CheckDropBarrier(context, engine_, file));
  ASSAY_ASSIGN_OR_RETURN(const auto rig, DecodeRig::Create(&context, engine_, file));
  if (schedules_.empty()) schedules_ = gpu::FixedSchedules(rig->info());
  for (const gpu::Schedule& schedule : schedules_) {
    if (schedule.kind != gpu::ScheduleKind::kInterleaved || rig->info().interleaves) continue;
    return Fail(gpu::NotInterleavedError(rig->info()));
  }
  for (const int64_t depth : depths_) {
    auto outcome = PerturbDepth(context, *rig, depth);
    runs_ = rig->runs();
    if (!outcome) {
      return Fail(std::move(outcome).error().While(fmt::format("perturbing depth {}", depth)));
    }
    if (!json_) PrintDepth(context, *outcome);
    context.Flush();
    outcomes_.push_back(*std::move(outcome));
  }
  return {};
}

std::string PerturbCommand::PassOf(const DepthOutcome& depth, uint64_t command_buffer) const {
  const auto passes = static_cast<uint64_t>(depth.prefill_passes);
  return command_buffer <= passes ? fmt::format("pass {} of the prompt", command_buffer)
                                  : fmt::format("step {}", command_buffer - passes);
}

void PerturbCommand::PrintPair(Context& context, const DepthOutcome& depth,
                               const CulpritPair& pair) const {
  const gpu::Culprit& culprit = pair.culprit;
  const std::string where = fmt::format("of command buffer {} ({})", culprit.place.command_buffer,
                                        PassOf(depth, culprit.place.command_buffer));
  const char* alone = culprit.alone ? "alone" : "with others of the schedule's changes";
  if (culprit.first == culprit.second) {
    context.Print(fmt::format("    the workgroups of dispatch {} ({}) {} depend on their order\n",
                              pair.first.dispatch, pair.first.kernel, where));
    return;
  }
  context.Print(fmt::format(
      "    dispatches {} ({}) and {} ({}) {}: {} changes the bits, {}\n", pair.first.dispatch,
      pair.first.kernel, pair.second.dispatch, pair.second.kernel, where,
      culprit.mixed ? "mixing their workgroups" : "changing their order", alone));
  for (const SharedBytes& bytes : pair.shared) {
    context.Print(
        fmt::format("    dispatch {} {} bytes [{}, {}) of buffer \"{}\", which dispatch "
                    "{} {}{}; no barrier stands between them\n",
                    pair.second.dispatch, Reads(bytes.second) ? "reads" : "writes",
                    bytes.range.begin, bytes.range.end, bytes.label, pair.first.dispatch,
                    Writes(bytes.first) ? "writes" : "reads", bytes.certain ? "" : " (perhaps)"));
  }
  if (pair.shared.empty()) {
    context.Print(
        "    they declare no bytes in conflict: one of them touches what it does not "
        "declare\n");
  }
}

void PerturbCommand::PrintDepth(Context& context, const DepthOutcome& depth) const {
  const Baseline& baseline = depth.baseline;
  context.Print(fmt::format("depth {}, steps {}: {}, {} in {}, {} of several (at most {})\n",
                            depth.plan.depth, depth.plan.steps, Counted(baseline.passes, "pass"),
                            Counted(baseline.dispatches, "dispatch"),
                            Counted(baseline.groups, "group"),
                            Counted(baseline.wide_groups, "group"), baseline.widest_group));
  for (const ScheduleOutcome& outcome : depth.schedules) {
    context.Print(fmt::format("  {:<15} {:>7} {} rearranged, ",
                              gpu::FormatSchedule(outcome.schedule), outcome.rearranged,
                              NounFor(outcome.rearranged, "group")));
    if (!outcome.difference) {
      context.Print("same bits\n");
      continue;
    }
    const StepDifference& difference = *outcome.difference;
    if (difference.logits == 0) {
      context.Print(
          fmt::format("DIFFERENT id at step {}, from the same logits\n", difference.step));
    } else {
      context.Print(
          fmt::format("DIFFERENT at step {}: {} logits, first {}: {:.9g}, recorded "
                      "{:.9g}\n",
                      difference.step, difference.logits, difference.first_logit, difference.got,
                      difference.want));
    }
    if (outcome.pair) {
      PrintPair(context, depth, *outcome.pair);
    } else {
      context.Print("    no pair was found: the same order gave other bits when it ran again\n");
    }
  }
}

ordered_json PerturbCommand::PairJson(const DepthOutcome& depth, const CulpritPair& pair) const {
  const auto side = [](const PairSide& one) {
    return ordered_json{{"dispatch", one.dispatch}, {"kernel", one.kernel}};
  };
  ordered_json json;
  json["command_buffer"] = pair.culprit.place.command_buffer;
  json["pass"] = PassOf(depth, pair.culprit.place.command_buffer);
  json["first"] = side(pair.first);
  json["second"] = side(pair.second);
  json["mixed"] = pair.culprit.mixed;
  json["alone"] = pair.culprit.alone;
  json["runs"] = pair.culprit.runs;
  json["shared"] = ordered_json::array();
  for (const SharedBytes& bytes : pair.shared) {
    json["shared"].push_back({{"buffer", bytes.label},
                              {"begin", bytes.range.begin},
                              {"end", bytes.range.end},
                              {"first", AccessName(bytes.first)},
                              {"second", AccessName(bytes.second)},
                              {"certain", bytes.certain}});
  }
  return json;
}

std::string PerturbCommand::Json(const std::string& summary, const std::string& error) const {
  ordered_json json;
  json["model"] = model_name_;
  json["backend"] = engine_.backend;
  json["kv"] = engine_.kv;
  json["barriers"] = engine_.barriers;
  json["drop_barrier"] = engine_.drop_barrier;
  json["depths"] = ordered_json::array();
  for (const DepthOutcome& depth : outcomes_) {
    ordered_json item;
    item["depth"] = depth.plan.depth;
    item["steps"] = depth.plan.steps;
    item["passes"] = depth.baseline.passes;
    item["dispatches"] = depth.baseline.dispatches;
    item["groups"] = depth.baseline.groups;
    item["groups_of_several"] = depth.baseline.wide_groups;
    item["schedules"] = ordered_json::array();
    for (const ScheduleOutcome& outcome : depth.schedules) {
      ordered_json one;
      one["schedule"] = gpu::FormatSchedule(outcome.schedule);
      one["rearranged"] = outcome.rearranged;
      one["same"] = !outcome.difference;
      if (outcome.difference) {
        one["step"] = outcome.difference->step;
        one["logits"] = outcome.difference->logits;
        one["pair"] = outcome.pair ? PairJson(depth, *outcome.pair) : ordered_json();
      }
      item["schedules"].push_back(std::move(one));
    }
    json["depths"].push_back(std::move(item));
  }
  if (!error.empty()) json["error"] = error;
  json["summary"] = summary;
  json["rc"] = status_;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string PerturbCommand::Summary() const {
  size_t tried = 0;
  size_t different = 0;
  for (const DepthOutcome& depth : outcomes_) {
    tried += depth.schedules.size();
    for (const ScheduleOutcome& outcome : depth.schedules) different += outcome.difference ? 1 : 0;
  }
  return fmt::format(
      "perturb: rc {}; schedules {} same {} different {}; depths {} steps {}; runs "
      "{}",
      status_, tried, tried - different, different, outcomes_.size(), steps_, runs_);
}

Result<int> PerturbCommand::Run(Context& context) {
  Status status = Perturb(context);
  if (!status) {
    if (status.error().code() == ErrorCode::kCancelled) return Fail(std::move(status).error());
    // So that a script finds the same last line whatever happened.
    context.PrintError(status.error().ToString());
    status_ = kExitFailed;
  }
  const std::string error = status ? std::string() : status.error().ToString();
  context.Print(json_ ? Json(Summary(), error) : Summary() + "\n");
  return status_;
}

}  // namespace

std::unique_ptr<Command> MakePerturbCommand() { return std::make_unique<PerturbCommand>(); }

}  // namespace assay::cli
