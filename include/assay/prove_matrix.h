// Proofs of a matrix: one proof made of many jobs that machines record apart from each other.
//
// A job is one model, backend and depth. It builds and records both sides and leaves a folder;
// folders are joined into one verdict. Who runs which job where is the caller's business.
#ifndef ASSAY_PROVE_MATRIX_H_
#define ASSAY_PROVE_MATRIX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/prove.h"

namespace assay::prove {

// One job. What stands in its id names it: the same words give the same id, wherever they stand in
// the file.
struct MatrixJob {
  std::string id;       // "MODEL.BACKEND.depth-N", without the parts that the matrix does not have.
  std::string model;    // Empty: the matrix names no models.
  std::string backend;  // Empty: the matrix names no backends.
  int64_t depth = 0;
  std::string model_file;                        // As the file says it; empty: none.
  std::map<std::string, std::string> variables;  // Names in braces and what they stand for.
};

// The id that the other members make: MatrixJob::id of every job of a matrix.
std::string IdOf(const MatrixJob& job);

struct Matrix {
  std::string path;
  std::vector<MatrixJob> jobs;  // By model, backend and depth, at least one.
  // Where in the file "matrix", "models.NAME", "models.NAME.KEY" stand, and the same of backends.
  std::map<std::string, uint64_t> lines = {};
};

// Errors: those of reading the file; kFormat, naming line and column.
Result<Matrix> ReadMatrix(const std::string& path);
Result<Matrix> ParseMatrix(std::string_view text, const std::string& path);

// The names in braces that jobs give a value, for ReadConfig; sorted.
std::vector<std::string> VariablesOf(const Matrix& matrix);

// Error kInvalidArgument, naming the line, when a value of the matrix reaches no record command,
// when a job has none for a name that one uses, or when two jobs would run the same commands.
Status CheckMatrix(const Matrix& matrix, const Config& config);

// The job `id`; kNotFound, naming the nearest.
Result<MatrixJob> FindJob(const Matrix& matrix, std::string_view id);

// One JSON object that lists the jobs, stable key order, ending in a newline.
std::string FormatMatrixJson(const Matrix& matrix);

// Builds and records both sides of one job, and leaves both folders of evidence and `job.json` in
// `folder`, which appears whole or not at all and must not be there yet or be empty. The proof says
// what was refused; nothing is compared. `config` was checked with CheckMatrix. Errors: as Prove(),
// and kInvalidArgument about `folder`.
Result<Proof> RunJob(const Matrix& matrix, const MatrixJob& job, const Config& config,
                     const ProveOptions& options, const std::string& folder);

// One job of a joined proof.
struct JobProof {
  std::string id;
  std::string folder;
  Proof proof;
};

struct MatrixProof {
  std::vector<JobProof> jobs;  // In the order of the matrix; empty when folders do not go together.
  std::vector<Refusal> refused;  // Folders and jobs for which nothing can be said, by name.
  int exit_status = 2;  // 0: every job is equal, or as allowed. 3: one differs. 2: refused.
};

struct MergeOptions {
  uint64_t max_differences = 20;  // That a report of a trace keeps.
  std::function<void(const std::string& step)> on_step = {};
  std::function<bool()> stop = {};
};

// Joins the folders of jobs, in any order. Refused, each by its name: a folder that is not whole, a
// job that is missing, given twice or with two results, and folders that another matrix,
// configuration, base, tree, program version or model was recorded with. `matrix`, where there is
// one, must be that of the folders. Errors: kCancelled.
Result<MatrixProof> MergeJobs(std::span<const std::string> folders, const Matrix* matrix,
                              const MergeOptions& options);

// For people: what each job found that is not equal, and last the one line "prove: rc R (jobs n,
// different d; kernels rc a, added n; trace ID rc b, ID rc c; ids differ d)".
std::string FormatMatrixProofText(const MatrixProof& proof);
// That last line, with its newline.
std::string FormatMatrixProofVerdict(const MatrixProof& proof);
// One JSON object, stable key order, ending in a newline.
std::string FormatMatrixProofJson(const MatrixProof& proof);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_MATRIX_H_
