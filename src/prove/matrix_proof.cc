// Jobs of a matrix: running one, and joining what they left.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "assay/prove_matrix.h"

#include "base/hash.h"
#include "prove/evidence.h"
#include "prove/job_folder.h"
#include "prove/proof_steps.h"

namespace assay::prove {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> IdsOf(const Matrix& matrix) {
  std::vector<std::string> ids;
  for (const MatrixJob& job : matrix.jobs) ids.push_back(job.id);
  return ids;
}

// What all machines must agree in: the jobs with what they stand for, and what the configuration
// says of building, recording and judging. Models are named as the file does, since each machine
// may have its own folder of them.
std::string PlanDigest(const Matrix& matrix, const Config& config) {
  Hasher hasher;
  const auto add = [&hasher](std::string_view text) {
    hasher.Update(fmt::format("{} ", text.size()));
    hasher.Update(text);
    hasher.Update("\n");
  };
  const auto add_variables = [&add](const std::map<std::string, std::string>& variables) {
    add(fmt::format("{}", variables.size()));
    for (const auto& [name, value] : variables) {
      add(name);
      add(value);
    }
  };
  for (const MatrixJob& job : matrix.jobs) {
    add(job.id);
    add(job.model_file);
    add_variables(job.variables);
  }
  for (const auto* commands : {&config.build_commands, &config.record_commands}) {
    add(fmt::format("{}", commands->size()));
    for (const std::string& command : *commands) add(command);
  }
  add_variables(config.variables);
  add(fmt::format("{} {} {}", config.require_kernels, config.require_trace, config.require_ids));
  for (const ChangeKind kind : config.allow) add(ChangeKindName(kind));
  return hasher.HexDigest();
}

Config ConfigOfJob(const Matrix& matrix, const MatrixJob& job, Config config) {
  config.depths = {job.depth};
  for (const auto& [name, value] : job.variables) config.variables[name] = value;
  if (!job.model_file.empty()) {
    std::error_code ignored;
    const fs::path folder = fs::absolute(matrix.path, ignored).parent_path();
    config.model = (folder / job.model_file).lexically_normal().string();
  }
  return config;
}

struct OpenedJob {
  std::string folder;
  JobFacts facts;
};

// What must be the same in every folder: its name in a message, and its value in one.
struct Shared {
  std::string_view name;
  std::string (*of)(const OpenedJob&);
};

constexpr std::array<Shared, 4> kShared = {{
    {"program version", [](const OpenedJob& job) { return job.facts.tool_version; }},
    {"matrix and configuration", [](const OpenedJob& job) { return job.facts.plan_digest; }},
    {"base", [](const OpenedJob& job) { return job.facts.proof.base.identity; }},
    {"tree", [](const OpenedJob& job) { return job.facts.proof.here.identity; }},
}};

// Opens folders and finds out whether they go together.
class Merger final {
 public:
  explicit Merger(MatrixProof* proof) : proof_(proof) {}

  // In the order of the matrix; with refusals, whatever could be opened.
  std::vector<OpenedJob> Open(std::span<const std::string> folders, const Matrix* matrix) {
    std::vector<std::string> sorted(folders.begin(), folders.end());
    std::ranges::sort(sorted);
    for (const std::string& folder : sorted) {
      Result<JobFacts> facts = OpenJobFolder(folder);
      if (facts) {
        jobs_.push_back({folder, std::move(*facts)});
      } else {
        Refuse(folder, facts.error().ToString());
      }
    }
    if (jobs_.empty()) return {};
    for (const Shared& shared : kShared) CheckSame(shared);
    CheckTwice();
    // Which jobs there are is known only when all folders agree in it.
    if (proof_->refused.empty() && matrix != nullptr) CheckMatrixOf(*matrix);
    if (proof_->refused.empty()) CheckModels();
    const std::vector<std::string> ids = jobs_.front().facts.matrix;
    CheckMissing(ids);
    std::map<std::string, size_t> place;
    for (size_t i = 0; i < ids.size(); ++i) place[ids[i]] = i;
    std::ranges::stable_sort(jobs_, {},
                             [&place](const OpenedJob& job) { return place[job.facts.job.id]; });
    return std::move(jobs_);
  }

 private:
  void Refuse(std::string by, std::string reason) {
    proof_->refused.push_back({.by = std::move(by), .reason = std::move(reason)});
  }

  // The value of most folders is taken for the right one, of two equally many that of the first.
  void CheckSame(const Shared& shared) {
    std::map<std::string, size_t> count;
    for (const OpenedJob& job : jobs_) ++count[shared.of(job)];
    if (count.size() == 1) return;
    const OpenedJob* usual = &jobs_.front();
    for (const OpenedJob& job : jobs_) {
      if (count[shared.of(job)] > count[shared.of(*usual)]) usual = &job;
    }
    for (const OpenedJob& job : jobs_) {
      if (shared.of(job) == shared.of(*usual)) continue;
      Refuse(job.facts.job.id,
             fmt::format("\"{}\" was recorded with another {} ({}) than \"{}\" ({}).", job.folder,
                         shared.name, shared.of(job), usual->folder, shared.of(*usual)));
    }
  }

  void CheckTwice() {
    std::map<std::string, const OpenedJob*> first;
    for (const OpenedJob& job : jobs_) {
      const auto [other, fresh] = first.emplace(job.facts.job.id, &job);
      if (fresh) continue;
      const bool same = SameEvidence(*other->second, job);
      Refuse(job.facts.job.id,
             same ? fmt::format("The job is in \"{}\" and again in \"{}\"; give one of them.",
                                other->second->folder, job.folder)
                  : fmt::format("The job is in \"{}\" and in \"{}\", and the two contradict each "
                                "other: their evidence is not the same.",
                                other->second->folder, job.folder));
    }
  }

  static bool SameEvidence(const OpenedJob& a, const OpenedJob& b) {
    const auto manifest = [](const ProofSide& side) {
      const auto folder = EvidenceFolder::Open(side.evidence);
      std::string text;
      if (!folder) return text;
      for (const EvidenceFile& file : folder->manifest().files) text += file.name + file.digest;
      return text;
    };
    return manifest(a.facts.proof.base) == manifest(b.facts.proof.base) &&
           manifest(a.facts.proof.here) == manifest(b.facts.proof.here);
  }

  // The ids of all jobs, and of those that are there what their words stand for.
  void CheckMatrixOf(const Matrix& matrix) {
    const std::vector<std::string> ids = IdsOf(matrix);
    const std::vector<std::string>& recorded = jobs_.front().facts.matrix;
    if (ids != recorded) {
      std::string differ;
      const auto only = [&differ](std::string_view where, const std::vector<std::string>& in,
                                  const std::vector<std::string>& other) {
        std::vector<std::string> alone;
        for (const std::string& id : in) {
          if (std::ranges::count(other, id) == 0) alone.push_back(id);
        }
        if (alone.empty()) return;
        differ += fmt::format("{} only in the {} {}", differ.empty() ? ":" : ";", where,
                              fmt::join(alone, ", "));
      };
      only("folders", recorded, ids);
      only("file", ids, recorded);
      Refuse(matrix.path, fmt::format("The jobs of the folders and of \"{}\" are not the same{}.",
                                      matrix.path, differ));
      return;
    }
    for (const OpenedJob& job : jobs_) {
      const auto row = std::ranges::find(matrix.jobs, job.facts.job.id, &MatrixJob::id);
      if (row != matrix.jobs.end()) CheckRow(job, *row, matrix.path);
    }
  }

  // The values behind one id, those of a name that stands on one side alone included.
  void CheckRow(const OpenedJob& job, const MatrixJob& row, const std::string& path) {
    const auto values_of = [](const MatrixJob& of) {
      std::map<std::string, std::string> values = of.variables;
      if (!of.model_file.empty()) values["file"] = of.model_file;
      return values;
    };
    const std::map<std::string, std::string> recorded = values_of(job.facts.job);
    const std::map<std::string, std::string> said = values_of(row);
    std::map<std::string, std::string> names = recorded;
    names.insert(said.begin(), said.end());
    for (const auto& [name, ignored] : names) {
      const auto was = recorded.find(name);
      const auto is = said.find(name);
      const bool both = was != recorded.end() && is != said.end();
      if (both && was->second == is->second) continue;
      Refuse(job.facts.job.id,
             fmt::format("\"{}\" was recorded {}, but \"{}\" {}.", job.folder,
                         was == recorded.end() ? fmt::format("without {}", name)
                                               : fmt::format("with {} = \"{}\"", name, was->second),
                         path,
                         is == said.end() ? std::string("does not say it")
                                          : fmt::format("says {} = \"{}\"", name, is->second)));
    }
  }

  // The contents of a model, and the program that recorded, must not depend on the machine.
  void CheckModels() {
    struct Seen {
      std::string model_digest, tool_version, folder;
    };
    std::map<std::pair<std::string, std::string>, Seen> seen;
    for (const OpenedJob& job : jobs_) {
      for (const ProofSide* side : {&job.facts.proof.base, &job.facts.proof.here}) {
        const auto folder = EvidenceFolder::Open(side->evidence);
        if (!folder) continue;
        const EvidenceFacts& facts = folder->manifest().facts;
        const auto entry = seen.emplace(std::pair(side->role, job.facts.job.model),
                                        Seen{facts.model_digest, facts.tool_version, job.folder});
        if (entry.second) continue;
        const Seen& first = entry.first->second;
        const auto refuse = [&](std::string_view what, const std::string& here,
                                const std::string& there) {
          Refuse(job.facts.job.id,
                 fmt::format("{} of \"{}\" was recorded with another {} ({}) than that of \"{}\" "
                             "({}).",
                             side->role, job.folder, what, here, first.folder, there));
        };
        if (facts.model_digest != first.model_digest) {
          refuse("model", facts.model_digest, first.model_digest);
        }
        if (facts.tool_version != first.tool_version) {
          refuse("version of the recording program", facts.tool_version, first.tool_version);
        }
      }
    }
  }

  void CheckMissing(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      const bool there = std::ranges::any_of(
          jobs_, [&id](const OpenedJob& job) { return job.facts.job.id == id; });
      if (!there) Refuse(id, "None of the folders is of this job.");
    }
  }

  MatrixProof* proof_;
  std::vector<OpenedJob> jobs_;
};

}  // namespace

Result<Proof> RunJob(const Matrix& matrix, const MatrixJob& job, const Config& config,
                     const ProveOptions& options, const std::string& folder) {
  ASSAY_TRY(CheckJobFolder(folder));
  EvidenceHolds holds;
  ASSAY_ASSIGN_OR_RETURN(Proof proof,
                         RecordSides(ConfigOfJob(matrix, job, config), options, folder, &holds));
  if (!proof.refused.empty()) return proof;
  // What is not whole, or lacks what the verdict needs, can be mended here and not where the
  // folders are joined. What the comparison finds beyond that is left to that place.
  Proof judged = proof;
  ASSAY_TRY(JudgeSides(options.max_differences, options.stop, &judged));
  if (!judged.refused.empty()) return judged;
  ASSAY_TRY(WriteJobFolder(folder, {.tool_version = options.tool_version,
                                    .job = job,
                                    .matrix = IdsOf(matrix),
                                    .plan_digest = PlanDigest(matrix, config),
                                    .proof = proof}));
  for (ProofSide* side : {&proof.base, &proof.here}) {
    side->evidence = (fs::path(folder) / side->role).string();
  }
  proof.exit_status = 0;
  return proof;
}

Result<MatrixProof> MergeJobs(std::span<const std::string> folders, const Matrix* matrix,
                              const MergeOptions& options) {
  MatrixProof result;
  std::vector<OpenedJob> jobs = Merger(&result).Open(folders, matrix);
  if (!result.refused.empty()) return result;
  bool different = false;
  for (OpenedJob& job : jobs) {
    if (options.on_step) options.on_step(fmt::format("comparing {}", job.facts.job.id));
    Proof& proof = job.facts.proof;
    ASSAY_TRY(JudgeSides(options.max_differences, options.stop, &proof));
    for (const Refusal& refusal : proof.refused) {
      result.refused.push_back(
          {.by = fmt::format("{} {}", job.facts.job.id, refusal.by), .reason = refusal.reason});
    }
    different |= proof.exit_status == 3;
    result.jobs.push_back({job.facts.job.id, job.folder, std::move(proof)});
  }
  result.exit_status = !result.refused.empty() ? 2 : different ? 3 : 0;
  return result;
}

}  // namespace assay::prove
