// The folder that one job of a matrix leaves.
//
//   base/, here/   the evidence of the two sides (evidence.h)
//   job.json       which job of which matrix it is, what was proved under which rules, and the
//                  digest of each side's manifest; written last
#ifndef ASSAY_PROVE_JOB_FOLDER_H_
#define ASSAY_PROVE_JOB_FOLDER_H_

#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/prove.h"
#include "assay/prove_matrix.h"

namespace assay::prove {

struct JobFacts {
  std::string tool_version;
  MatrixJob job;
  std::vector<std::string> matrix;  // The ids of all its jobs, in their order.
  // Of the matrix and of what the configuration says of building, recording and judging.
  std::string plan_digest;
  // The sides and the rules; without evidence and verdict.
  Proof proof;
};

// Whether a job can be put there: nothing may stand under the name but an empty folder, and the
// nearest folder above it that is there must take one. kInvalidArgument, else kIo.
Status CheckJobFolder(const std::string& folder);

// Copies the evidence of both sides of `facts.proof` and writes job.json; the folder appears whole
// or not at all, and those above it are made. Errors: as CheckJobFolder(), those of reading the
// evidence, kIo.
Status WriteJobFolder(const std::string& folder, const JobFacts& facts);

// The facts of a whole folder; the sides' evidence lies in it. Errors: kNotFound when it is no
// folder or has no job.json; kFormat when something in it is not what was written, or when what it
// says of itself does not hold together; kUnsupported.
Result<JobFacts> OpenJobFolder(const std::string& folder);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_JOB_FOLDER_H_
