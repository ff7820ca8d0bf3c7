#include "assay/prove.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "assay/prove_report.h"

#include "prove/build_site.h"
#include "prove/git.h"
#include "prove/placeholders.h"
#include "prove/process.h"
#include "prove/proof_steps.h"
#include "prove/site_cache.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;
using compare::Verdict;

// A folder that is there is a working tree, anything else a revision.
Result<TreeState> StateOfHere(const Repository& repository, const ProveOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(options.here, ignored)) return repository.State();
  TreeState state;
  ASSAY_ASSIGN_OR_RETURN(state.commit, repository.Commit(options.here));
  state.identity = state.commit;
  return state;
}

ProofSide SideOf(const char* role, const std::string& name, const TreeState& state) {
  return {.role = role,
          .name = name,
          .commit = state.commit,
          .identity = state.identity,
          .changed = state.changed.size(),
          .evidence = {}};
}

// Puts the comparison into the proof and judges it.
class Judge final {
 public:
  explicit Judge(Proof* proof) : proof_(proof) {}

  Status Run(const compare::Options& options, uint64_t max_differences) {
    EvidenceReport& evidence = proof_->evidence.emplace(
        CompareEvidence(proof_->base.evidence, proof_->here.evidence, options));
    // Of a folder that is not whole there are no parts.
    if (evidence.depths.empty()) {
      Refuse("evidence", evidence.reason);
      return {};
    }
    if (proof_->require_kernels) JudgeKernels(evidence.kernels);
    for (DepthComparison& depth : evidence.depths) {
      ASSAY_TRY(JudgeTrace(&depth, max_differences));
    }
    if (proof_->require_ids) JudgeIds(evidence);
    return {};
  }

  void Finish() {
    proof_->kinds.assign(kinds_.begin(), kinds_.end());
    for (const ChangeKind kind : kinds_) {
      if (std::ranges::count(proof_->allow, kind) == 0) proof_->not_allowed.push_back(kind);
    }
    const bool different = !proof_->not_allowed.empty() || different_;
    proof_->exit_status = !proof_->refused.empty() ? 2 : different ? 3 : 0;
  }

 private:
  void Refuse(std::string by, std::string reason) {
    proof_->refused.push_back({.by = std::move(by), .reason = std::move(reason)});
  }

  void JudgeKernels(const std::optional<ScanComparison>& kernels) {
    if (!kernels) {
      Refuse("kernels",
             "The evidence of both sides must hold a kernel scan, unless \"require\" in the "
             "configuration leaves \"kernels\" out.");
      return;
    }
    if (kernels->verdict == Verdict::kRefused) Refuse("kernels", kernels->reason);
    if (kernels->added > 0) kinds_.insert(ChangeKind::kKernelsAdded);
    if (kernels->removed > 0) kinds_.insert(ChangeKind::kKernelsRemoved);
    if (kernels->changed > 0) kinds_.insert(ChangeKind::kKernelsChanged);
  }

  Status JudgeTrace(DepthComparison* depth, uint64_t max_differences) {
    Change& change = proof_->changes.emplace_back();
    change.sides = proof_->evidence->sides;
    const std::string by = fmt::format("trace depth {}", depth->depth);
    if (!depth->report) {
      if (proof_->require_trace) {
        Refuse(by, fmt::format("Only {} has it.", depth->in_a ? "base" : "here"));
      }
      return {};
    }
    compare::Report& report = *depth->report;
    ASSAY_ASSIGN_OR_RETURN(change, ClassifyChange(report.name_a, report.name_b, report));
    if (report.differences.size() > max_differences) report.differences.resize(max_differences);
    if (!proof_->require_trace) return {};
    if (report.verdict == Verdict::kRefused) Refuse(by, report.reason);
    kinds_.insert(change.kinds.begin(), change.kinds.end());
    // What nobody has looked at is not allowed.
    if (change.looked_at) different_ = true;
    return {};
  }

  void JudgeIds(const EvidenceReport& evidence) {
    if (evidence.ids.empty()) {
      Refuse("ids",
             "The evidence of both sides must hold ids, unless \"require\" in the configuration "
             "leaves \"ids\" out.");
    }
    if (evidence.differing_ids() > 0) different_ = true;
  }

  Proof* proof_;
  std::set<ChangeKind> kinds_;
  bool different_ = false;
};

Status CheckModel(const Config& config) {
  for (const std::string& command : config.record_commands) {
    if (!config.model.empty() || !HasPlaceholder(command, "model")) continue;
    return Fail(ErrorCode::kInvalidArgument, config.path,
                fmt::format("A record command holds {{model}}, but neither \"model\" in \"{}\" nor "
                            "--model names one.",
                            config.path));
  }
  std::error_code ignored;
  if (config.model.empty() || fs::exists(config.model, ignored)) return {};
  return Fail(ErrorCode::kNotFound, config.model,
              fmt::format("The model \"{}\" does not exist.", config.model));
}

// What is written into the tree would be a part of what is proved, and another one each time.
Status CheckApart(const Repository& repository, std::string_view what, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const bool inside, repository.Sees(path));
  if (!inside) return {};
  return Fail(ErrorCode::kInvalidArgument, path,
              fmt::format("The {} \"{}\" lies in the tree that is proved (\"{}\"), where it would "
                          "count as a change of it; name a folder outside, or let git ignore it.",
                          what, path, repository.root()));
}

// What the configuration's key command prints. Its failure is an error, since a key that is not
// known keeps nothing apart.
Result<std::string> Toolchain(const Repository& repository, const Config& config,
                              const ProveOptions& options) {
  constexpr std::chrono::seconds kLimit{60};
  if (config.key_command.empty()) return std::string();
  ASSAY_ASSIGN_OR_RETURN(
      const ProcessResult result,
      RunProcess({"/bin/sh", "-c", config.key_command},
                 {.folder = repository.root(), .time_limit = kLimit, .stop = options.stop}));
  if (result.exit_status == 0 && !result.timed_out) return result.out;
  return Fail(
      ErrorCode::kInvalidArgument, config.path,
      fmt::format("The command \"key\" of [build] in \"{}\" {}: {}", config.path,
                  result.timed_out ? fmt::format("took longer than {} s", kLimit.count())
                                   : fmt::format("failed with status {}", result.exit_status),
                  config.key_command));
}

}  // namespace

std::string DefaultCache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path path;
  if (cache != nullptr && *cache == '/') {
    path = cache;
  } else if (home != nullptr && *home == '/') {
    path = fs::path(home) / ".cache";
  } else {
    std::error_code ignored;
    path = fs::temp_directory_path(ignored);
  }
  return (path / "assay" / "prove").string();
}

Result<Proof> RecordSides(const Config& config, const ProveOptions& given,
                          const std::string& output, EvidenceHolds* holds) {
  ProveOptions options = given;
  if (options.cache.empty()) options.cache = DefaultCache();
  ASSAY_TRY(CheckModel(config));
  std::error_code ignored;
  const bool folder = fs::is_directory(options.here, ignored);
  ASSAY_ASSIGN_OR_RETURN(const Repository repository,
                         Repository::Find(folder ? options.here : ".", options.stop));
  ASSAY_TRY(CheckApart(repository, "cache", options.cache));
  if (!output.empty()) ASSAY_TRY(CheckApart(repository, "folder of the job", output));
  RemoveDeadWorktrees(repository, options.cache);
  TreeState base;
  ASSAY_ASSIGN_OR_RETURN(base.commit, repository.Commit(options.base));
  base.identity = base.commit;
  ASSAY_ASSIGN_OR_RETURN(TreeState here, StateOfHere(repository, options));
  ASSAY_ASSIGN_OR_RETURN(const std::string toolchain, Toolchain(repository, config, options));

  Proof proof;
  proof.base = SideOf("base", options.base, base);
  proof.here = SideOf("here", options.here, here);
  proof.require_kernels = config.require_kernels;
  proof.require_trace = config.require_trace;
  proof.require_ids = config.require_ids;
  proof.allow = config.allow;
  // The same state twice is built twice: what a proof of nothing to prove rests on.
  const int copy_of_here = base.identity == here.identity ? 1 : 0;
  const auto work = [&](TreeState* state, int copy, ProofSide* side) -> Status {
    ASSAY_TRY(repository.FindLinksOut(state));
    if (!state->links_out.empty() && options.on_note) {
      options.on_note(fmt::format(
          "{} is built and recorded anew each time: its link \"{}\" leads out of the tree, and "
          "what that names is no part of the cache's key",
          side->role, state->links_out.front()));
    }
    ASSAY_ASSIGN_OR_RETURN(const auto site,
                           BuildSite::Enter(repository, *state, config, options, copy, toolchain));
    ASSAY_TRY(site->Work(side, &proof.refused));
    ASSAY_ASSIGN_OR_RETURN(FileLock hold, HoldSite(site->folder()));
    holds->push_back(std::move(hold));
    return {};
  };
  ASSAY_TRY(work(&base, 0, &proof.base));
  // With one side missing there is nothing to compare, and building takes long.
  if (proof.refused.empty()) ASSAY_TRY(work(&here, copy_of_here, &proof.here));
  Prune(options.cache, options.cache_limit_bytes);
  return proof;
}

Status JudgeSides(uint64_t max_differences, const std::function<bool()>& stop, Proof* proof) {
  Judge judge(proof);
  if (proof->refused.empty()) {
    ASSAY_TRY(judge.Run(
        {.max_differences = kClassifiedDifferences, .sides = {"base", "here"}, .stop = stop},
        max_differences));
    if (stop && stop()) return Fail(ErrorCode::kCancelled, "", "The comparison was stopped.");
  }
  judge.Finish();
  return {};
}

Result<Proof> Prove(const Config& config, const ProveOptions& options) {
  EvidenceHolds holds;
  ASSAY_ASSIGN_OR_RETURN(Proof proof, RecordSides(config, options, "", &holds));
  if (proof.refused.empty() && options.on_step) options.on_step("comparing");
  ASSAY_TRY(JudgeSides(options.max_differences, options.stop, &proof));
  return proof;
}

}  // namespace assay::prove
