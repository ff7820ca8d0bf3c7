#include "cli/prove_matrix.h"

#include <fmt/format.h>

#include "base/text.h"

namespace assay::cli {

MatrixReport ListJobs(const prove::Matrix& matrix, MatrixOutput output) {
  if (output.json) return {0, prove::FormatMatrixJson(matrix)};
  std::string text;
  for (const prove::MatrixJob& job : matrix.jobs) {
    text += job.id;
    if (!output.quiet) {
      const auto add = [&text](std::string_view name, std::string_view value) {
        if (!value.empty()) text += fmt::format("\t{}={}", name, Printable(value));
      };
      add("model", job.model);
      add("file", job.model_file);
      add("depth", fmt::format("{}", job.depth));
      for (const auto& [name, value] : job.variables) add(name, value);
    }
    text += '\n';
  }
  return {0, std::move(text)};
}

Result<MatrixReport> RunMatrixJob(const prove::Matrix& matrix, const std::string& id,
                                  const prove::Config& config, const prove::ProveOptions& options,
                                  const std::string& folder, MatrixOutput output) {
  ASSAY_ASSIGN_OR_RETURN(const prove::MatrixJob job, prove::FindJob(matrix, id));
  const std::string out = folder.empty() ? id : folder;
  ASSAY_ASSIGN_OR_RETURN(const prove::Proof proof,
                         prove::RunJob(matrix, job, config, options, out));
  MatrixReport report{proof.exit_status, {}};
  report.refused = proof.refused;
  if (output.json) {
    report.text = prove::FormatProofJson(proof);
  } else if (!proof.refused.empty()) {
    report.text = output.quiet ? prove::FormatProofVerdict(proof) : prove::FormatProofText(proof);
  } else if (!output.quiet) {
    report.text = fmt::format("job {}: recorded in {}\n", id, Printable(out));
  }
  return report;
}

Result<MatrixReport> MergeMatrixJobs(std::span<const std::string> folders,
                                     const prove::Matrix* matrix,
                                     const prove::MergeOptions& options, MatrixOutput output) {
  ASSAY_ASSIGN_OR_RETURN(const prove::MatrixProof proof,
                         prove::MergeJobs(folders, matrix, options));
  return MatrixReport{proof.exit_status,
                      output.json    ? prove::FormatMatrixProofJson(proof)
                      : output.quiet ? prove::FormatMatrixProofVerdict(proof)
                                     : prove::FormatMatrixProofText(proof),
                      prove::Summarize(proof), proof.refused};
}

}  // namespace assay::cli
