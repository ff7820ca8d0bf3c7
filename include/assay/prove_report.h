// Reports of a proof or a comparison for where people read them: a pull-request comment, a build
// server, a browser.
//
//   const prove::Summary summary = prove::Summarize(proof);
//   ASSAY_TRY(WriteFile("comment.md", prove::FormatMarkdown(summary)));
//   ASSAY_ASSIGN_OR_RETURN(const std::string page, prove::FormatHtml(summary, {}));
//
// All text that comes from outside (names of kernels and buffers, paths, logs) is escaped for the
// format it is put into.
#ifndef ASSAY_PROVE_REPORT_H_
#define ASSAY_PROVE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/compare.h"
#include "assay/prove.h"
#include "assay/prove_matrix.h"

namespace assay::prove {

// How a part came out, or all of them.
enum class Outcome : uint8_t {
  kSame,
  kAllowed,    // Different only in what the configuration allows.
  kDifferent,  // For a comparison also: the same but for the numbers of buffers.
  kRefused,
  kNotAsked,  // Different, in a part that is not required to be equal.
};
// "same", "allowed", "different", "refused", "not required".
std::string_view OutcomeName(Outcome outcome);

struct ReportPart {
  std::string name = {};  // "kernels", "trace depth 600", "ids depth 0", "base".
  Outcome outcome = Outcome::kSame;
  std::string says = {};                   // One sentence.
  std::vector<std::string> changes = {};   // The kinds of change in words, one sentence each.
  std::vector<Change::Line> context = {};  // Where two traces part.
  std::string text = {};                   // The part's own report, in lines; may be empty.
  // Of a trace that both sides have: the two files.
  std::string trace_a = {};
  std::string trace_b = {};
};

// What all reports are made of. Plain data.
struct Summary {
  std::string command;  // "prove" or "compare".
  Outcome outcome = Outcome::kSame;
  std::string headline;      // In a few words: "No change", "Different".
  std::string verdict;       // The command's last line.
  std::string changed;       // "changed: order, constants"; empty when nothing is to say.
  std::string name_a = "A";  // What stands for A, short.
  std::string name_b = "B";
  std::vector<std::string> sides;  // What was compared, one sentence each.
  std::vector<std::string> notes;
  std::vector<ReportPart> parts;
};

// So many differences of a trace are enough to say of what kind they all are; a comparison that is
// summed up should keep as many.
inline constexpr size_t kClassifiedDifferences = 100'000;

Summary Summarize(const Proof& proof);
// The parts of every job, under the job's name.
Summary Summarize(const MatrixProof& proof);
// Errors of these two: those of reading a trace.
Result<Summary> Summarize(const EvidenceReport& report);
Result<Summary> Summarize(const compare::Report& report);

// For a comment on a change: the verdict first, a table of the parts, where the streams part, and
// each part's report folded away. At most 60,000 bytes, which is less than such comments take.
std::string FormatMarkdown(const Summary& summary);

// One suite with one test case a part: different is a failure, refused an error, not required a
// skipped test. UTF-8, ending in a newline.
std::string FormatJunit(const Summary& summary);

struct PageOptions {
  // Rows of a trace that the page holds; those behind them are counted.
  uint64_t max_rows = 1'000'000;
  // Asked now and then; true ends it with kCancelled.
  std::function<bool()> stop = {};
};
// One page of HTML that needs nothing else: the streams of every part side by side. It reads the
// traces again. Errors: those of reading them; kIo when one is no longer what was compared.
Result<std::string> FormatHtml(const Summary& summary, const PageOptions& options);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_REPORT_H_
