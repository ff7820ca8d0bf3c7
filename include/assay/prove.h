// Prove: what one build of a program says about its work on a device, and the verdict on two
// builds.
//
// A build's evidence is a folder: one trace a depth, a scan of the kernels, the generated ids
// (src/prove/evidence.h). Two folders are compared part by part.
#ifndef ASSAY_PROVE_H_
#define ASSAY_PROVE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
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
  compare::Sides sides = {};
};

// Refused when either failed or the methods differ.
ScanComparison CompareScans(const Scan& a, const Scan& b, const compare::Sides& sides = {});
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
  compare::Sides sides = {};

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

// A line about the ids of one depth.
std::string FormatIdsLine(const IdComparison& ids, const compare::Sides& sides = {});
// For people; ends in "compare: rc N (...)" and a line in plain words.
std::string FormatEvidenceText(const EvidenceReport& report);
// One JSON object, stable key order, ending in a newline.
std::string FormatEvidenceJson(const EvidenceReport& report);

// --- Configuration

// Kinds of change, from harmless to not.
enum class ChangeKind : uint8_t {
  kNumbering,          // The numbers of buffers, and nothing else.
  kBarriersFewer,      // Barriers only A has.
  kBarriersMore,       // Barriers only B has.
  kBarriersMoved,      // As many barriers, in other places.
  kOrder,              // Dispatches in another order.
  kDispatchesAdded,    // Dispatches only B has.
  kDispatchesRemoved,  // Dispatches only A has.
  kConstants,          // Constants, grids or dynamic shared memory of a dispatch.
  kBindings,           // The buffers, ranges or accesses that a dispatch binds.
  kKernelsAdded,       // Kernels only B has.
  kKernelsRemoved,     // Kernels only A has.
  kKernelsChanged,     // Other code under the same name.
  kHost,               // Buffers made or freed, host reads and writes, waits, command buffers.
  kMeta,               // What the traces say of how they were recorded.
};
inline constexpr size_t kChangeKindCount = 14;
// "numbering", "barriers-fewer", ...: the word in the configuration and in reports.
std::string_view ChangeKindName(ChangeKind kind);

// What kind of difference two traces show.
struct Change {
  std::vector<ChangeKind> kinds;  // Sorted, each once; empty: nothing changed.
  uint64_t barriers_a = 0, barriers_b = 0;
  uint64_t dispatches_a = 0, dispatches_b = 0;
  uint64_t dispatches_added = 0, dispatches_removed = 0, dispatches_moved = 0;
  uint64_t constants_changed = 0, bindings_changed = 0;
  uint64_t buffers_renumbered = 0, buffers = 0;

  // For kOrder: whether no two dispatches that need an order exchanged theirs. nullopt where
  // dispatches changed otherwise as well, so that the question has no answer.
  std::optional<bool> order_legal;
  std::string order_conflict;  // The first pair that exchanged its order, as a sentence.

  // What the hazard check finds; nullopt where it was not run (identical) or cannot be.
  std::optional<uint64_t> hazards_a, hazards_b;
  // Not empty: there are more differences than were looked at, and this many were.
  std::optional<uint64_t> looked_at;

  // Where the streams part, with what stands around it.
  struct Line {
    char mark = ' ';  // '-' only in A, '+' only in B.
    uint64_t line_a = 0, line_b = 0;
    std::string text;
  };
  std::vector<Line> context;
  compare::Sides sides = {};
};

// Says what kind of difference `report`, which compared the two traces with the greatest number of
// differences that is wanted, shows. Errors: those of reading a trace.
Result<Change> ClassifyChange(const std::string& path_a, const std::string& path_b,
                              const compare::Report& report);
// In plain words, one sentence a kind, each on a line: "3 barriers fewer (12, were 15)".
std::string FormatChange(const Change& change);

// Compilers and flags as CMake, make and their like take them from the environment.
inline constexpr std::string_view kDefaultKeyCommand =
    "echo \"$CC|$CXX|$CFLAGS|$CXXFLAGS|$LDFLAGS\"; (${CC:-cc} --version; ${CXX:-c++} --version) "
    "2>&1 || true";

// What `assay.toml` says (docs/prove.md).
struct Config {
  std::string path;
  std::vector<std::string> build_commands;
  int64_t build_limit_s = 3600;  // Of each command.
  // What it prints is a part of the key under which builds are kept.
  std::string key_command = std::string(kDefaultKeyCommand);
  std::vector<std::string> record_commands;
  int64_t record_limit_s = 600;
  std::vector<int64_t> depths = {0, 600};  // Rising.
  std::string model;                       // Absolute; empty: none.
  // Names that record commands may hold in braces, with what they stand for.
  std::map<std::string, std::string> variables = {};
  bool require_kernels = true;
  bool require_trace = true;
  bool require_ids = true;
  std::vector<ChangeKind> allow;  // Sorted.
};

inline constexpr std::string_view kConfigName = "assay.toml";
// Errors: those of reading the file; kFormat, naming line and column and, for a wrong key, the
// nearest known one.
// `more` are names in braces that record commands may hold without an entry in `variables`.
Result<Config> ReadConfig(const std::string& path, std::span<const std::string> more = {});
// A relative model lies in the folder of `path`.
Result<Config> ParseConfig(std::string_view text, const std::string& path,
                           std::span<const std::string> more = {});
// A commented configuration to start from.
std::string_view ConfigTemplate();

// --- The proof

// One of the two builds.
struct ProofSide {
  std::string role;    // "base" or "here".
  std::string name;    // As it was asked for: a revision or a folder.
  std::string commit;  // In full.
  // The commit, and the digest of what differs from it where anything does.
  std::string identity = {};
  uint64_t changed = 0;  // Files of a working tree that differ from the commit.
  std::string evidence;  // The folder; empty while there is none.
  bool cached = false;   // Nothing had to be built or recorded.
};

// Why nothing can be said, and by whom: a side, or a part of the comparison.
struct Refusal {
  std::string by;  // "base", "here", "kernels", "trace depth 600", "ids", "evidence".
  std::string reason;
  std::string log = {};       // The file that a failed command wrote, if one did.
  std::string log_tail = {};  // Its last lines.
};

// What a proof found, as data; a report is made of this alone.
struct Proof {
  ProofSide base, here;
  bool require_kernels = true, require_trace = true, require_ids = true;
  std::vector<ChangeKind> allow;
  // Without a build that failed. A is base, B is here.
  std::optional<EvidenceReport> evidence;
  std::vector<Change> changes;          // One for each of evidence->depths.
  std::vector<ChangeKind> kinds;        // Of all required parts; sorted.
  std::vector<ChangeKind> not_allowed;  // Those of them that `allow` does not name.
  std::vector<Refusal> refused;
  // 0: equal, or different only as allowed. 3: different. 2: refused.
  int exit_status = 2;
};

struct ProveOptions {
  std::string base;        // A revision.
  std::string here = ".";  // A folder in a working tree, or else a revision.
  std::string cache;       // Where worktrees, builds and evidence lie; DefaultCache() when empty.
  // Of the cache, whose sites that were used longest ago go first; those of this run stay.
  uint64_t cache_limit_bytes = uint64_t{20} << 30;
  bool rebuild = false;           // Does not use what an earlier run left.
  uint64_t max_differences = 20;  // That a report of a trace keeps.
  std::string tool_version;
  // Told of each step when it begins.
  std::function<void(const std::string& step)> on_step = {};
  // Told what a user should know on the way, as a sentence without its full stop.
  std::function<void(const std::string& note)> on_note = {};
  // Asked several times a second; true ends everything.
  std::function<bool()> stop = {};
};

// $XDG_CACHE_HOME/assay/prove, or ~/.cache/assay/prove.
std::string DefaultCache();

// Builds both, records both, compares (P1). The working tree, index and stash of the repository
// stay as they are, and no worktree is left, however it ends. What a build or a recording says is
// a Refusal; errors are about what was asked: kNotFound (no repository, no such revision, no git),
// kInvalidArgument, kIo, kCancelled.
Result<Proof> Prove(const Config& config, const ProveOptions& options);

// For people: each part's report, what changed in words, and last the line "prove: rc R (kernels
// rc a, added n; trace depth 0 rc b, depth 600 rc c; ids differ d)".
std::string FormatProofText(const Proof& proof);
// By whom and why, as sentences on one line without a newline, for standard error.
std::string FormatRefusal(const Refusal& refusal);
// That last line, with its newline.
std::string FormatProofVerdict(const Proof& proof);
// One JSON object, stable key order, ending in a newline.
std::string FormatProofJson(const Proof& proof);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_H_
