// The two halves of a proof: what builds and records, and what compares and judges.
#ifndef ASSAY_PROVE_PROOF_STEPS_H_
#define ASSAY_PROVE_PROOF_STEPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/prove.h"

#include "prove/file_lock.h"

namespace assay::prove {

// What keeps the evidence of a proof in the cache while it lives.
using EvidenceHolds = std::vector<FileLock>;

// Builds and records both sides. What a build or a recording says is in Proof::refused; where
// nothing is, both sides have evidence, which stays as long as *holds. `output` is a folder that
// the caller will write, if any. Errors as Prove().
Result<Proof> RecordSides(const Config& config, const ProveOptions& options,
                          const std::string& output, EvidenceHolds* holds);

// Compares the evidence of both sides, unless something is refused already, and sets everything in
// *proof from `evidence` on. Errors: kCancelled, and those of reading a trace.
Status JudgeSides(uint64_t max_differences, const std::function<bool()>& stop, Proof* proof);

// The parts that must be equal, as the configuration names them.
std::vector<std::string> RequiredParts(const Proof& proof);
// The reverse of ChangeKindName().
std::optional<ChangeKind> ChangeKindNamed(std::string_view name);

// The report without the verdict line.
std::string FormatProofBody(const Proof& proof);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_PROOF_STEPS_H_
