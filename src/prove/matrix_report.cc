#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "assay/prove_matrix.h"

#include "base/text.h"
#include "prove/proof_steps.h"

namespace assay::prove {
namespace {

using compare::Verdict;
using nlohmann::ordered_json;

// Refused before different before identical; -1 where no job has a scan.
int WorstOfKernels(const MatrixProof& proof) {
  bool any = false;
  bool different = false;
  for (const JobProof& job : proof.jobs) {
    if (!job.proof.evidence || !job.proof.evidence->kernels) continue;
    any = true;
    const Verdict verdict = job.proof.evidence->kernels->verdict;
    if (verdict == Verdict::kRefused) return static_cast<int>(verdict);
    different |= verdict == Verdict::kDifferent;
  }
  if (!any) return -1;
  return static_cast<int>(different ? Verdict::kDifferent : Verdict::kIdentical);
}

// Jobs of one program show the same kernels; each is counted once.
size_t AddedKernels(const MatrixProof& proof) {
  std::set<std::pair<std::string, std::string>> added;
  for (const JobProof& job : proof.jobs) {
    if (!job.proof.evidence || !job.proof.evidence->kernels) continue;
    for (const ScanDifference& difference : job.proof.evidence->kernels->differences) {
      if (difference.kind != ScanDifference::Kind::kAdded) continue;
      added.emplace(difference.kernel, difference.target);
    }
  }
  return added.size();
}

std::string PartsOf(const MatrixProof& proof) {
  size_t different = 0;
  bool any_ids = false;
  uint64_t differing_ids = 0;
  std::vector<std::string> traces;
  for (const JobProof& job : proof.jobs) {
    if (job.proof.exit_status == 3) ++different;
    if (!job.proof.evidence) continue;
    any_ids |= !job.proof.evidence->ids.empty();
    differing_ids += job.proof.evidence->differing_ids();
    for (const DepthComparison& depth : job.proof.evidence->depths) {
      const Verdict verdict = depth.report ? depth.report->verdict : Verdict::kRefused;
      traces.push_back(fmt::format("{} rc {}", job.id, static_cast<int>(verdict)));
    }
  }
  const int kernels = WorstOfKernels(proof);
  return fmt::format("jobs {}, different {}; {}; trace {}; {}", proof.jobs.size(), different,
                     kernels < 0
                         ? std::string("no kernels")
                         : fmt::format("kernels rc {}, added {}", kernels, AddedKernels(proof)),
                     fmt::join(traces, ", "),
                     any_ids ? fmt::format("ids differ {}", differing_ids) : std::string("no ids"));
}

std::vector<std::string> RefusedBy(const MatrixProof& proof) {
  std::vector<std::string> by;
  for (const Refusal& refusal : proof.refused) {
    std::string name = Printable(refusal.by);
    if (std::ranges::count(by, name) == 0) by.push_back(std::move(name));
  }
  return by;
}

bool Interesting(const Proof& proof) {
  return proof.exit_status != 0 || !proof.kinds.empty() ||
         (proof.evidence && proof.evidence->verdict != Verdict::kIdentical);
}

}  // namespace

std::string FormatMatrixProofVerdict(const MatrixProof& proof) {
  std::string parts = proof.jobs.empty() ? std::string() : PartsOf(proof);
  if (!proof.refused.empty()) {
    parts += fmt::format("{}refused by {}", parts.empty() ? "" : "; ",
                         fmt::join(RefusedBy(proof), ", "));
  }
  return fmt::format("prove: rc {} ({})\n", proof.exit_status, parts);
}

std::string FormatMatrixProofText(const MatrixProof& proof) {
  std::string text;
  for (const JobProof& job : proof.jobs) {
    if (Interesting(job.proof)) {
      text += fmt::format("=== job {}\n{}", job.id, FormatProofBody(job.proof));
    } else {
      text += fmt::format("=== job {}: equal\n", job.id);
    }
  }
  // Those of a job stand in its own report.
  if (proof.jobs.empty()) {
    for (const Refusal& refusal : proof.refused) {
      text += fmt::format("refused by {}: {}\n", Printable(refusal.by), Printable(refusal.reason));
    }
  }
  return text + FormatMatrixProofVerdict(proof);
}

std::string FormatMatrixProofJson(const MatrixProof& proof) {
  ordered_json json;
  json["exit_status"] = proof.exit_status;
  std::string verdict = FormatMatrixProofVerdict(proof);
  verdict.pop_back();
  json["verdict"] = verdict;
  json["refused"] = ordered_json::array();
  for (const Refusal& refusal : proof.refused) {
    json["refused"].push_back({{"by", refusal.by}, {"reason", refusal.reason}});
  }
  json["jobs"] = ordered_json::array();
  for (const JobProof& job : proof.jobs) {
    json["jobs"].push_back({{"id", job.id},
                            {"folder", job.folder},
                            {"proof", ordered_json::parse(FormatProofJson(job.proof))}});
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::prove
