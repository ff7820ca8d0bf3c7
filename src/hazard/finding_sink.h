// FindingSink: names findings, holds them against the suppressions, counts and lists them.
#ifndef ASSAY_HAZARD_FINDING_SINK_H_
#define ASSAY_HAZARD_FINDING_SINK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/hazard.h"

#include "hazard/buffer_table.h"

namespace assay::hazard {

// Fills the lists and counts of a Report, which must outlive it. One thread.
class FindingSink final {
 public:
  FindingSink(const Options& options, Report* report);

  // Gives the finding its fingerprint. `buffer` is null where all memory is meant. Returns false
  // when it is suppressed.
  bool Add(Finding finding, const BufferInfo* buffer);
  void AddRedundantBarrier(RedundantBarrier barrier, std::string_view kernel_before,
                           std::string_view kernel_after);
  void AddSuggestion(const Suggestion& suggestion);
  // Lists the suppressions that matched nothing.
  void Finish();

 private:
  Fingerprint NextFingerprint(uint64_t identity);
  bool IsSuppressed(const Fingerprint& fingerprint);

  const uint64_t max_listed_;
  Report* report_;
  std::vector<Fingerprint> suppressions_;  // Sorted.
  std::vector<bool> suppression_used_;
  std::unordered_map<uint64_t, uint64_t> occurrences_;
  std::string key_;
};

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_FINDING_SINK_H_
