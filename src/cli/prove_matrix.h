// The parts of `assay prove` about a matrix of jobs: list them, run one, join what they left.
#ifndef ASSAY_CLI_PROVE_MATRIX_H_
#define ASSAY_CLI_PROVE_MATRIX_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/prove_matrix.h"
#include "assay/prove_report.h"

namespace assay::cli {

struct MatrixReport {
  int exit_status = 0;
  std::string text;
  std::optional<prove::Summary> summary = {};  // Of a merge.
  std::vector<prove::Refusal> refused = {};
};
struct MatrixOutput {
  bool quiet = false;
  bool json = false;
};

// A line a job: its id and, unless quiet, what it stands for.
MatrixReport ListJobs(const prove::Matrix& matrix, MatrixOutput output);

// Runs one job into `folder`, or into one with the id's name when that is empty.
Result<MatrixReport> RunMatrixJob(const prove::Matrix& matrix, const std::string& id,
                                  const prove::Config& config, const prove::ProveOptions& options,
                                  const std::string& folder, MatrixOutput output);

// Joins the folders; `matrix` may be null.
Result<MatrixReport> MergeMatrixJobs(std::span<const std::string> folders,
                                     const prove::Matrix* matrix,
                                     const prove::MergeOptions& options, MatrixOutput output);

}  // namespace assay::cli

#endif  // ASSAY_CLI_PROVE_MATRIX_H_
