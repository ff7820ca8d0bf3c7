// The comparison of two evidence folders: every trace and every id.
#ifndef ASSAY_PROVE_EVIDENCE_COMPARE_H_
#define ASSAY_PROVE_EVIDENCE_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/compare.h"

namespace assay::prove {

// The traces of one depth.
struct DepthComparison {
  int64_t depth = 0;
  // nullopt: only one folder has this depth.
  std::optional<compare::Report> report;
  bool in_a = false;
  bool in_b = false;
};

// The generated ids of one depth that both folders have.
struct IdComparison {
  int64_t depth = 0;
  uint64_t count_a = 0, count_b = 0;
  uint64_t differing = 0;  // Places where they differ, those that one side lacks included.
  // Of the first such place.
  uint64_t first_index = 0;
  std::optional<int32_t> first_a, first_b;
};

struct EvidenceReport {
  compare::Verdict verdict = compare::Verdict::kIdentical;
  std::string name_a, name_b;
  std::string reason;              // For kRefused.
  std::vector<std::string> notes;  // Under which conditions the folders were recorded.
  std::vector<DepthComparison> depths;
  std::vector<IdComparison> ids;
};

// Never an error: a folder that is not whole is kRefused with its reason. The verdict is refused
// when any part is, else different when any part is or the ids differ, else renumbered when any
// trace is, else identical.
EvidenceReport CompareEvidence(const std::string& folder_a, const std::string& folder_b,
                               const compare::Options& options);

// For people; ends in "compare: rc N (...)" and a line in plain words.
std::string FormatEvidenceText(const EvidenceReport& report);
// One JSON object, stable key order, ending in a newline.
std::string FormatEvidenceJson(const EvidenceReport& report);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_EVIDENCE_COMPARE_H_
