#include "cli/prove_command.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "assay/prove.h"

#include "base/file.h"
#include "cli/prove_matrix.h"
#include "cli/report_flags.h"
#include "cli/runner.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

class ProveCommand final : public Command {
 public:
  CommandSpec Describe() override;
  Status CheckArguments() override;
  Result<int> Run(Context& context) override;

 private:
  Result<int> Init(Context& context) const;
  tl::unexpected<Error> Failed(Context& context, const Error& error) const;
  Result<prove::Config> Configure(std::span<const std::string> variables) const;
  // What the command is asked for: each takes other flags.
  enum Form : unsigned { kProof = 1, kList = 2, kJob = 4, kMerge = 8, kInit = 16 };
  Form form() const;
  // Every flag that was given must mean something.
  Status CheckFlags() const;
  Status CheckBase() const;
  // What is read, and must not be written over.
  std::vector<std::string> Inputs() const;
  Result<std::string> FindConfig() const;
  static void PrintRefusals(Context& context, std::span<const prove::Refusal> refused);
  Result<MatrixReport> RunMatrix(const prove::ProveOptions& options, MatrixOutput output) const;

  std::string base_;
  std::vector<std::string> more_;  // Folders to merge, after the first word.
  std::string matrix_;
  std::string job_;
  std::string out_;
  bool merge_ = false;
  std::string here_ = ".";
  std::string config_;
  std::string cache_;
  std::string model_;
  std::vector<int64_t> depths_ = {0, 600};
  int64_t max_differences_ = 20;
  bool rebuild_ = false;
  int64_t cache_limit_gib_ = 20;
  bool init_ = false;
  bool json_ = false;
  ReportFlags reports_;
  // Which flags stand on the command line.
  struct {
    bool here = false, config = false, depths = false, model = false, rebuild = false,
         cache = false, cache_limit = false, max_differences = false, json = false, out = false;
  } given_;
};

CommandSpec ProveCommand::Describe() {
  CommandSpec spec = {
      .name = "prove",
      .summary = "Builds and records two commits, and says whether they do the same work.",
      .description =
          "Checks BASE out into a worktree of its own, builds it and TREE with the commands of "
          "assay.toml, records both, and compares kernels, traces and ids. TREE is the working "
          "tree as it is, changes and untracked files included. Nothing in it is touched, nor in "
          "the index or the stash, and no worktree is left behind.\n\n"
          "Builds and recordings are kept in a cache by commit, contents and commands: the same "
          "two again take seconds. A commit against itself is built and recorded twice.\n\n"
          "With --matrix, one proof is made of jobs: one a model, backend and depth. Without --job "
          "the jobs are listed; --job records one; --merge joins the folders of all.\n\n"
          "The last line is the verdict: prove: rc R (kernels rc a, added n; trace depth 0 rc b, "
          "depth 600 rc c; ids differ d).",
      .positionals = {{.name = "BASE",
                       .value = TextValue{&base_},
                       .help = "The revision to compare with.",
                       .required = false},
                      {.name = "DIR",
                       .value = TextListValue{&more_},
                       .help = "With --merge, in place of BASE: the folders of the jobs.",
                       .required = false}},
      .flags = {{.names = "--here",
                 .value = TextValue{&here_},
                 .placeholder = "TREE",
                 .help = "The working tree to prove, or a revision.",
                 .given = &given_.here},
                {.names = "--config",
                 .value = TextValue{&config_},
                 .placeholder = "FILE",
                 .help = "The configuration, instead of assay.toml in TREE or above.",
                 .given = &given_.config,
                 .show_default = false},
                {.names = "--depth",
                 .value = IntegerListValue{&depths_, 0, INT32_MAX},
                 .placeholder = "N,...",
                 .help = "Depths to record, instead of those of the configuration.",
                 .given = &given_.depths,
                 .show_default = false},
                {.names = "-m,--model",
                 .value = TextValue{&model_},
                 .placeholder = "FILE",
                 .help = "The model file, instead of that of the configuration.",
                 .given = &given_.model,
                 .show_default = false},
                {.names = "--rebuild",
                 .value = SwitchValue{&rebuild_},
                 .help = "Builds and records again what the cache has.",
                 .given = &given_.rebuild},
                {.names = "--cache",
                 .value = TextValue{&cache_},
                 .placeholder = "DIR",
                 .help =
                     "Where worktrees, builds, logs and evidence lie, instead of assay/prove in "
                     "the user's cache folder.",
                 .given = &given_.cache,
                 .show_default = false},
                {.names = "--cache-limit",
                 .value = IntegerValue{&cache_limit_gib_, 0, 1'000'000},
                 .placeholder = "GIB",
                 .help = "What is kept in the cache at most; what was used longest ago goes first, "
                         "and what this run uses stays.",
                 .given = &given_.cache_limit},
                {.names = "--max-differences",
                 .value = IntegerValue{&max_differences_, 1, 1'000'000},
                 .placeholder = "N",
                 .help = "Shows the first N differences of a trace; all are counted.",
                 .given = &given_.max_differences},
                {.names = "--json",
                 .value = SwitchValue{&json_},
                 .help = "Prints the report as one JSON object.",
                 .given = &given_.json},
                {.names = "--matrix",
                 .value = TextValue{&matrix_},
                 .placeholder = "FILE",
                 .help = "Lists the jobs of FILE; with --job, runs one; with --merge, holds the "
                         "folders against it.",
                 .show_default = false},
                {.names = "--job",
                 .value = TextValue{&job_},
                 .placeholder = "ID",
                 .help = "Records this job of the matrix, and compares nothing.",
                 .show_default = false},
                {.names = "-o,--out",
                 .value = TextValue{&out_},
                 .placeholder = "DIR",
                 .help = "With --job: the folder to leave, instead of one named like the job. It "
                         "must not be there, or be empty.",
                 .given = &given_.out,
                 .show_default = false},
                {.names = "--merge",
                 .value = SwitchValue{&merge_},
                 .help = "Joins the folders of all jobs of a matrix into one proof."},
                {.names = "--init",
                 .value = SwitchValue{&init_},
                 .help = "Writes a commented assay.toml here and does nothing else."}},
      .examples = {{"assay prove --init", "Writes a configuration to start from."},
                   {"assay prove main", "Does this tree do the work of main?"},
                   {"assay prove HEAD~1 --here HEAD", "Did the last commit change anything?"},
                   {"assay prove main --html proof.html", "The two streams side by side."},
                   {"assay prove -q --matrix matrix.toml | parallel assay prove --matrix "
                    "matrix.toml --job {} -o ../jobs/{} main",
                    "Records every job, as many at once as there are cores."},
                   {"assay prove --merge ../jobs/*", "Joins them into one verdict."}},
      .exit_meanings = {{0,
                         "Equal, or different only in what the configuration allows; listed; the "
                         "job was recorded."},
                        {2,
                         "Refused: a build or a recording failed, or something in the evidence "
                         "cannot be compared; the report says what and by whom."},
                        {3, "Different."}},
      .quiet_help = "Prints the verdict line alone, and no progress.",
  };
  reports_.AddTo(&spec);
  return spec;
}

ProveCommand::Form ProveCommand::form() const {
  if (init_) return kInit;
  if (merge_) return kMerge;
  if (!job_.empty()) return kJob;
  return matrix_.empty() ? kProof : kList;
}

Status ProveCommand::CheckFlags() const {
  const struct {
    std::string_view name;
    bool given;
    unsigned forms;  // In which the flag means something.
    std::string_view instead = {};
  } flags[] = {
      {"--here", given_.here, kProof | kList | kJob},
      {"--config", given_.config, kProof | kList | kJob | kInit},
      {"--depth", given_.depths, kProof, "the depths stand in the matrix"},
      {"--model", given_.model, kProof,
       "the models stand in the matrix, or as \"model\" of [record] in the configuration"},
      {"--rebuild", given_.rebuild, kProof | kJob},
      {"--cache", given_.cache, kProof | kJob},
      {"--cache-limit", given_.cache_limit, kProof | kJob},
      {"--max-differences", given_.max_differences, kProof | kMerge},
      {"--json", given_.json, kProof | kList | kJob | kMerge},
      {"--out", given_.out, kJob},
      {"--matrix", !matrix_.empty(), kList | kJob | kMerge},
      {"--job", !job_.empty(), kJob},
      {"--merge", merge_, kMerge},
      {"--markdown", reports_.markdown(), kProof | kMerge, "--merge writes the reports of jobs"},
      {"--junit", reports_.junit(), kProof | kMerge, "--merge writes the reports of jobs"},
      {"--html", reports_.html(), kProof | kMerge, "--merge writes the reports of jobs"},
  };
  const auto phrase = [](Form form) -> std::string_view {
    switch (form) {
      case kProof:
        return "a proof without --job";
      case kList:
        return "--matrix alone, which lists the jobs";
      case kJob:
        return "--job";
      case kMerge:
        return "--merge";
      case kInit:
        return "--init";
    }
    return {};
  };
  for (const auto& flag : flags) {
    if (!flag.given || (flag.forms & form()) != 0) continue;
    const bool matrix = form() == kList || form() == kJob;
    return Fail(ErrorCode::kInvalidArgument, std::string(flag.name),
                fmt::format("{} has no meaning with {}{}; leave it out.", flag.name, phrase(form()),
                            matrix && !flag.instead.empty() ? fmt::format(": {}", flag.instead)
                                                            : std::string()));
  }
  return {};
}

Status ProveCommand::CheckBase() const {
  const auto fail = [](const char* about, std::string message) {
    return Fail(ErrorCode::kInvalidArgument, about, std::move(message));
  };
  if (form() != kMerge && !more_.empty()) {
    return fail("DIR", fmt::format("The argument \"{}\" is one too many.", more_.front()));
  }
  switch (form()) {
    case kInit:
      if (base_.empty()) return {};
      return fail("BASE", fmt::format("--init takes no BASE (\"{}\").", base_));
    case kList:
      if (base_.empty()) return {};
      return fail("BASE", fmt::format("--matrix alone lists jobs and takes no BASE (\"{}\"); name "
                                      "the job to run with --job.",
                                      base_));
    case kMerge:
      if (!base_.empty()) return {};
      return fail("DIR", "--merge needs the folders of the jobs.");
    case kProof:
    case kJob:
      break;
  }
  if (!base_.empty()) return {};
  return fail("BASE", "BASE is missing: name the revision to compare with.");
}

std::vector<std::string> ProveCommand::Inputs() const {
  if (merge_) {
    std::vector<std::string> inputs = more_;
    inputs.insert(inputs.end(), {base_, matrix_});
    return inputs;
  }
  std::vector<std::string> inputs = {model_, cache_.empty() ? prove::DefaultCache() : cache_};
  // What is wrong with the configuration is said when it is needed.
  if (const Result<std::string> path = FindConfig()) {
    inputs.push_back(*path);
    if (const Result<prove::Config> config = prove::ReadConfig(*path)) {
      inputs.push_back(config->model);
    }
  }
  return inputs;
}

Status ProveCommand::CheckArguments() {
  // Each is there for the other alone, so that no other fault says more.
  if (!job_.empty() && matrix_.empty() && !init_) {
    return Fail(ErrorCode::kInvalidArgument, "--job", "--job needs --matrix.");
  }
  if (merge_ && !job_.empty() && !init_) {
    return Fail(ErrorCode::kInvalidArgument, "--merge", "--merge and --job exclude each other.");
  }
  ASSAY_TRY(CheckFlags());
  ASSAY_TRY(CheckBase());
  if (reports_.any()) ASSAY_TRY(reports_.Check(json_, Inputs(), here_));
  std::ranges::sort(depths_);
  const auto twice = std::ranges::adjacent_find(depths_);
  if (twice != depths_.end()) {
    return Fail(ErrorCode::kInvalidArgument, "--depth",
                fmt::format("--depth names {} twice; name each depth once.", *twice));
  }
  return {};
}

Result<int> ProveCommand::Init(Context& context) const {
  const std::string path = config_.empty() ? std::string(prove::kConfigName) : config_;
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    return Fail(ErrorCode::kInvalidArgument, path,
                fmt::format("\"{}\" is there already; it was left as it is.", path));
  }
  ASSAY_TRY(WriteFile(path, prove::ConfigTemplate()));
  if (!context.quiet()) context.Print(fmt::format("{}: written\n", path));
  return kExitOk;
}

Result<std::string> ProveCommand::FindConfig() const {
  if (!config_.empty()) return config_;
  std::error_code ignored;
  const bool folder = fs::is_directory(here_, ignored);
  const fs::path start = fs::absolute(folder ? here_ : ".", ignored).lexically_normal();
  for (fs::path at = start;; at = at.parent_path()) {
    if (fs::exists(at / prove::kConfigName, ignored)) return (at / prove::kConfigName).string();
    if (at != at.parent_path()) continue;
    return Fail(ErrorCode::kNotFound, start.string(),
                fmt::format("There is no {} in \"{}\" or above it. `assay prove --init` writes one "
                            "to start from.",
                            prove::kConfigName, start.string()));
  }
}

Result<prove::Config> ProveCommand::Configure(std::span<const std::string> variables) const {
  ASSAY_ASSIGN_OR_RETURN(const std::string path, FindConfig());
  ASSAY_ASSIGN_OR_RETURN(prove::Config config, prove::ReadConfig(path, variables));
  if (given_.depths) config.depths = depths_;
  if (model_.empty()) return config;
  const auto uses_model = [](const std::string& command) {
    return command.find("{model}") != std::string::npos;
  };
  if (std::ranges::none_of(config.record_commands, uses_model)) {
    return Fail(
        ErrorCode::kInvalidArgument, "--model",
        fmt::format("No record command of \"{}\" uses {{model}}, so -m would change nothing; "
                    "name it in the command, or leave out -m.",
                    config.path));
  }
  std::error_code ignored;
  config.model = fs::absolute(model_, ignored).lexically_normal().string();
  return config;
}

Result<MatrixReport> ProveCommand::RunMatrix(const prove::ProveOptions& options,
                                             MatrixOutput output) const {
  std::optional<prove::Matrix> matrix;
  if (!matrix_.empty()) {
    ASSAY_ASSIGN_OR_RETURN(matrix, prove::ReadMatrix(matrix_));
  }
  if (merge_) {
    std::vector<std::string> folders = {base_};
    folders.insert(folders.end(), more_.begin(), more_.end());
    return MergeMatrixJobs(folders, matrix ? &*matrix : nullptr,
                           {.max_differences = options.max_differences,
                            .on_step = options.on_step,
                            .stop = options.stop},
                           output);
  }
  ASSAY_ASSIGN_OR_RETURN(const prove::Config config, Configure(prove::VariablesOf(*matrix)));
  ASSAY_TRY(prove::CheckMatrix(*matrix, config));
  if (!job_.empty()) {
    return RunMatrixJob(*matrix, job_, config, options, out_, output);
  }
  return ListJobs(*matrix, output);
}

tl::unexpected<Error> ProveCommand::Failed(Context& context, const Error& error) const {
  // Whoever reads the last line alone must not take an older verdict for this run's.
  // JSON has it as the exit status.
  if (error.code() == ErrorCode::kCancelled && context.cancelled() && !json_) {
    context.Print(fmt::format("prove: rc {} (stopped)\n", 128 + context.stop_signal()));
  }
  return Fail(error);
}

void ProveCommand::PrintRefusals(Context& context, std::span<const prove::Refusal> refused) {
  for (const prove::Refusal& refusal : refused) context.PrintError(prove::FormatRefusal(refusal));
}

Result<int> ProveCommand::Run(Context& context) {
  if (init_) return Init(context);
  ASSAY_TRY(reports_.CheckFiles());
  prove::ProveOptions options;
  options.base = base_;
  options.here = here_;
  options.cache = cache_;
  options.cache_limit_bytes = static_cast<uint64_t>(cache_limit_gib_) << 30;
  options.rebuild = rebuild_;
  options.max_differences = static_cast<uint64_t>(max_differences_);
  options.tool_version = Version();
  options.stop = [&context] { return context.cancelled(); };
  std::optional<Progress> progress;
  options.on_step = [&](const std::string& step) {
    progress.reset();
    progress.emplace(context.StartProgress(step));
  };
  options.on_note = [&](const std::string& note) {
    progress.reset();
    context.Note(note + '.');
  };
  if (merge_ || !matrix_.empty()) {
    const Result<MatrixReport> report =
        RunMatrix(options, {.quiet = context.quiet(), .json = json_});
    progress.reset();
    if (!report) return Failed(context, report.error());
    PrintRefusals(context, report->refused);
    if (!reports_.takes_output()) context.Print(report->text);
    if (report->summary) ASSAY_TRY(reports_.Write(context, *report->summary));
    return report->exit_status;
  }
  ASSAY_ASSIGN_OR_RETURN(const prove::Config config, Configure({}));
  Result<prove::Proof> proof = prove::Prove(config, options);
  progress.reset();
  if (!proof) return Failed(context, proof.error());
  PrintRefusals(context, proof->refused);
  if (!reports_.takes_output()) {
    context.Print(json_             ? prove::FormatProofJson(*proof)
                  : context.quiet() ? prove::FormatProofVerdict(*proof)
                                    : prove::FormatProofText(*proof));
  }
  if (reports_.any()) {
    progress.emplace(context.StartProgress("writing the reports"));
    ASSAY_TRY(reports_.Write(context, prove::Summarize(*proof)));
  }
  return proof->exit_status;
}

}  // namespace

std::unique_ptr<Command> MakeProveCommand() { return std::make_unique<ProveCommand>(); }

}  // namespace assay::cli
