// Hazard: proves from a trace that a program's dispatches are ordered where they must be, or lists
// every place where they are not (docs/hazards.md). No device is needed.
//
//   hazard::Options options;
//   ASSAY_ASSIGN_OR_RETURN(hazard::Report report, hazard::CheckTrace("run.trace", options));
//   fputs(hazard::FormatText(report, options).c_str(), stdout);
//   return hazard::ExitStatus(report, options);
//
// A finding is certain when every access in it is exact, and possible when one of them is an upper
// bound of what the kernel touches (a trailing `?` in the trace).
#ifndef ASSAY_HAZARD_H_
#define ASSAY_HAZARD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/trace.h"

namespace assay::hazard {

// What can be found. RuleName() gives the word used in every output; src/hazard/rules.cc describes
// each.
enum class Rule : uint8_t {
  kReadAfterWrite,    // A dispatch reads what another wrote, and no barrier stands between them.
  kWriteAfterRead,    // A dispatch writes what another read.
  kWriteAfterWrite,   // A dispatch writes what another wrote.
  kHostRead,          // The host reads bytes that a command buffer in flight writes.
  kHostWrite,         // The host writes bytes that a command buffer in flight reads or writes.
  kFreeInFlight,      // A buffer ends while a command buffer in flight binds it.
  kUseAfterFree,      // A dispatch or the host names a buffer that was freed.
  kDoubleFree,        // A buffer is freed a second time.
  kOutOfBounds,       // A binding or host access leaves its buffer.
  kSelfOverlap,       // Two bindings of one dispatch share bytes, one of them writable, and are not
                      // the same range.
  kNeverWritten,      // Bytes are read that nobody wrote; a note.
  kRedundantBarrier,  // A barrier whose removal leaves the same pairs unordered; a note.
};
inline constexpr size_t kRuleCount = 12;

// "raw", "war", "waw", "host-read", ...
std::string_view RuleName(Rule rule);

// The columns of the summary line.
enum class Category : uint8_t { kRaw, kWar, kWaw, kHost, kLifetime, kBounds, kSelf, kNote };
inline constexpr size_t kHazardCategoryCount = 7;  // All but kNote.
Category CategoryOf(Rule rule);

// Names a finding from one run to the next. `identity` is made of the rule, the names of the
// kernels and the buffer's label (its kind and size, when it has none); `occurrence` counts the
// findings of that identity in the trace, from 1. Lines, places and byte ranges do not enter, so
// that an event added elsewhere leaves it alone. Written as "0123456789abcdef:1".
struct Fingerprint {
  uint64_t identity = 0;
  uint64_t occurrence = 0;  // In a suppression, 0 stands for all: "0123456789abcdef:*".
  auto operator<=>(const Fingerprint&) const = default;  // NOLINT(modernize-use-nullptr)
};
std::string FormatFingerprint(const Fingerprint& fingerprint);

// The fingerprints that a suppression file names: one a line, with an optional comment from '#' on.
// Errors: kFormat, naming `name` and the line.
Result<std::vector<Fingerprint>> ParseSuppressions(std::string_view text, std::string_view name);

struct Options {
  // A finding named here is listed as suppressed and counts for nothing.
  std::vector<Fingerprint> suppressions;
  // Possible findings count for the exit status as certain ones do.
  bool strict = false;
  // Findings beyond this many are counted but not listed; so are redundant barriers, notes and
  // suggestions, each on its own.
  uint64_t max_listed = 1'000'000;
  // trace::ReaderLimits'.
  std::function<bool()> stop = {};
};

// Who did one side of a finding.
struct Actor {
  uint64_t line = 0;             // From 1.
  uint64_t command_buffer = 0;   // From 1; 0: the host.
  uint64_t dispatch = 0;         // From 1 within the command buffer; 0: the host.
  std::string_view kernel = {};  // Lives as long as the report.
};

inline constexpr int32_t kNoBinding = -1;

struct Finding {
  Rule rule = Rule::kReadAfterWrite;
  bool certain = true;
  bool suppressed = false;
  // The earlier side. Only pairs have it, and uses of a freed buffer (the free): line 0 otherwise.
  Actor first = {};
  Actor second = {};
  // Bindings, counted from 0, where the rule speaks of single bindings.
  int32_t first_binding = kNoBinding;
  int32_t second_binding = kNoBinding;
  // nullopt: all memory, for a pair with a dispatch that declares no accesses.
  std::optional<trace::BufferId> buffer = {};
  std::string_view label = {};  // Lives as long as the report.
  // The shared bytes; for kOutOfBounds the whole access; empty when `buffer` is nullopt.
  ByteRange range = {};
  uint64_t buffer_bytes = 0;
  Fingerprint fingerprint = {};
};

// A place for a barrier: ahead of a dispatch.
struct Suggestion {
  Actor before = {};
  // The pairs that a barrier there alone would close.
  uint64_t closes_certain = 0;
  uint64_t closes_possible = 0;
};

struct RedundantBarrier {
  uint64_t line = 0;
  uint64_t command_buffer = 0;  // From 1.
  uint64_t barrier = 0;         // From 1 within the command buffer.
  uint64_t after_dispatch = 0;  // The dispatch ahead of it; 0: none.
  Fingerprint fingerprint = {};
  bool suppressed = false;
};

struct BarrierCounts {
  uint64_t issued = 0;
  uint64_t redundant = 0;  // Each could be removed alone; suppressed ones included.
  uint64_t least = 0;  // The fewest that order every conflicting pair, dispatches left in place.
};

// What a check says. Holds only plain values; thread-compatible.
struct Report {
  std::string name;  // The trace's.
  int version = 0;
  // Not empty: the trace has buffers without a place, so nothing else here counts. A sentence.
  std::string refused;
  uint64_t command_buffers = 0;
  uint64_t dispatches = 0;

  // In order of the later side.
  std::vector<Finding> findings;
  std::vector<Finding> notes;
  // Certain findings that are not suppressed, by Category; notes are not among them.
  std::array<uint64_t, kHazardCategoryCount> certain{};
  uint64_t possible = 0;
  uint64_t suppressed = 0;
  uint64_t note_count = 0;

  BarrierCounts barriers;
  std::vector<RedundantBarrier> redundant_barriers;

  // The place where one barrier closes the most pairs.
  std::optional<Suggestion> best_suggestion;
  // The fewest barriers that, added to those issued, close every pair.
  std::vector<Suggestion> suggestions;
  uint64_t suggestion_count = 0;

  // Suppressions that matched nothing.
  std::vector<Fingerprint> unused_suppressions;

  // Owns the kernel names and labels above.
  std::shared_ptr<const void> names;

  uint64_t hazards() const {
    uint64_t sum = 0;
    for (const uint64_t count : certain) sum += count;
    return sum;
  }
};

// Takes a trace's events one at a time, in memory bounded by the ranges in use, the buffers ever
// made and the dispatches between two barriers. One thread.
class Checker final {
 public:
  explicit Checker(const Options& options);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // `line` is where the event stands. Errors: kFormat for events that a TraceReader would not
  // deliver (a buffer that no event made, a dispatch outside a command buffer); kUnsupported past
  // 4,294,967,294 dispatches or 4,096 accesses of one dispatch. After an error the checker is of
  // no more use.
  Status Add(const trace::Event& event, uint64_t line);
  // Once, after the last event.
  Report Finish();

 private:
  friend class CheckerTestPeer;
  struct State;
  std::unique_ptr<State> state_;
};

// Checks a whole trace. Errors are the reader's and Checker's: the trace proves nothing, and the
// exit status is 2.
Result<Report> CheckTrace(const std::string& path, const Options& options);
// The same for a trace in memory, plain or zstd.
Result<Report> CheckTraceText(std::string_view text, std::string name, const Options& options);

// 0: no hazards. 1: at least one that is neither suppressed nor, unless strict, merely possible.
// 2: refused.
int ExitStatus(const Report& report, const Options& options);

// For people; the last line is SummaryLine().
std::string FormatText(const Report& report, const Options& options);
// One JSON object, stable key order, ending in a newline.
std::string FormatJson(const Report& report, const Options& options);
// SARIF 2.1.0, ending in a newline.
std::string FormatSarif(const Report& report, const Options& options);

// "check: rc R; hazards N (raw a, war b, waw c, host d, lifetime e, bounds f, self g); possible p;
// barriers issued I redundant R least L" and a newline.
std::string SummaryLine(const Report& report, int exit_status);

// --- Barrier mutation (E9)

// A barrier of a trace, and what leaving out this one alone does to the check.
struct Mutant {
  uint64_t line = 0;
  uint64_t command_buffer = 0;  // From 1.
  uint64_t barrier = 0;         // From 1 within the command buffer.
  uint64_t after_dispatch = 0;  // The dispatch ahead of it; 0: none.
  // A pair of dispatches that only this barrier orders, so that the check finds it when the barrier
  // is gone: a certain one if there is one, and of those the one that ends first and spans the
  // fewest dispatches. nullopt: there is none, and the barrier is redundant.
  std::optional<Finding> pair = {};

  bool killed() const { return pair.has_value(); }
};

struct MutationReport {
  std::string name;  // The trace's.
  int version = 0;
  // Not empty: the trace has buffers without a place, so nothing else here counts. A sentence.
  std::string refused;
  uint64_t command_buffers = 0;
  uint64_t dispatches = 0;
  std::vector<Mutant> mutants;  // One a barrier, in order.
  uint64_t killed = 0;
  uint64_t killed_possible = 0;  // Of those, by possible pairs only.
  uint64_t hazards = 0;          // With all barriers in place, by the check's own count.

  // Owns the kernel names and labels above.
  std::shared_ptr<const void> names;

  uint64_t survived() const { return mutants.size() - killed; }
};

// Drops each barrier of a trace in turn, in one pass over the trace. Errors as CheckTrace;
// `stop` is trace::ReaderLimits'.
Result<MutationReport> MutateTrace(const std::string& path, const std::function<bool()>& stop = {});
// The same for a trace in memory, plain or zstd.
Result<MutationReport> MutateTraceText(std::string_view text, std::string name);

}  // namespace assay::hazard

#endif  // ASSAY_HAZARD_H_
