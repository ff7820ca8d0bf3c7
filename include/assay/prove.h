// Prove: what one build of a program says about its work on a device, and the verdict on two
// builds.
//
// A build's evidence is a folder: one trace a depth, a scan of the kernels, the generated ids
// (src/prove/evidence.h). Two folders are compared part by part.
#ifndef ASSAY_PROVE_H_
#define ASSAY_PROVE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/compare.h"

namespace assay::prove {

// --- Kernel scans

// One kernel as one target runs it. Figures that a scan cannot tell are 0 or empty.
struct ScanRow {
  std::string kernel = {};
  std::string target = {};  // The instruction set or device family that the code is for.
  std::string digest = {};  // Of the code, made as the scan's method says; lower-case hex.
  Extent3 workgroup = {};
  uint32_t shared_bytes = 0;  // Static.
  uint32_t bindings = 0;
  uint32_t constant_bytes = 0;
  std::string spec = {};                              // Specialisation, "name=value,...".
  uint64_t code_bytes = 0;                            // Of the code that was digested.
  std::map<std::string, uint64_t> instructions = {};  // By class ("branch", "vector", ...).
  std::map<std::string, uint64_t> figures = {};  // What a driver reports ("registers", "spills").
  bool operator==(const ScanRow&) const = default;
};

// The kernels of one program. A scan that failed has a reason and no rows.
struct Scan {
  std::string method;  // How digests are made; scans of two methods cannot be compared.
  std::string failed;  // Empty: it did not fail.
  std::vector<ScanRow> rows;
  bool operator==(const Scan&) const = default;
};

inline constexpr int kScanVersion = 1;

// The file of a scan (docs/prove.md): one line a row, sorted by kernel and target; a failed scan
// has none. Equal scans are equal bytes.
std::string FormatScan(const Scan& scan);
// The reverse. `name` is used in messages. Errors: kFormat, naming the line; kUnsupported.
Result<Scan> ParseScan(std::string_view text, std::string_view name);
// ParseScan of a file, or of the scan in a folder of evidence. kNotFound when the folder has none.
Result<Scan> ReadScan(const std::string& path);

// A row that is not the same on both sides.
struct ScanDifference {
  enum class Kind : uint8_t { kAdded, kRemoved, kChanged };
  Kind kind = Kind::kChanged;
  std::string kernel;
  std::string target;
  // For kChanged: the first field that differs, and its values.
  std::string field, value_a, value_b;
};

struct ScanComparison {
  compare::Verdict verdict = compare::Verdict::kIdentical;  // Never kRenumbered.
  std::string reason;                                       // For kRefused: which and why.
  uint64_t added = 0, removed = 0, changed = 0, same = 0;
  std::vector<ScanDifference> differences;  // Sorted by kernel and target.
};

// Refused when either failed or the methods differ.
ScanComparison CompareScans(const Scan& a, const Scan& b);
// "summary: added=A removed=R changed=C same=S" and a newline; of a refused comparison, its reason.
std::string FormatScanSummary(const ScanComparison& comparison);
// A line for each difference, then the summary.
std::string FormatScanText(const ScanComparison& comparison);
// One JSON object, stable key order, ending in a newline.
std::string FormatScanJson(const ScanComparison& comparison);

// --- Two folders of evidence

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
  // nullopt: a folder has no scan, which the notes say when the other has one.
  std::optional<ScanComparison> kernels;
  std::vector<DepthComparison> depths;
  std::vector<IdComparison> ids;  // Of the depths for which both have ids.

  uint64_t differing_ids() const {
    uint64_t differing = 0;
    for (const IdComparison& sequence : ids) differing += sequence.differing;
    return differing;
  }
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

#endif  // ASSAY_PROVE_H_
