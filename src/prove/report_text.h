// Pieces of text that several reports of a proof have in common.
#ifndef ASSAY_PROVE_REPORT_TEXT_H_
#define ASSAY_PROVE_REPORT_TEXT_H_

#include <string>
#include <string_view>

#include "assay/prove.h"

namespace assay::prove {

// `text` on one line, printable, cut where it is too long to be shown.
std::string Shown(std::string_view text);
// "base: main (0123456789ab with 2 changed files), EVIDENCE" and a newline.
std::string SideLine(const ProofSide& side);
// By whom and why, with the end of the log.
std::string RefusalText(const Refusal& refusal);
// Where two streams part, a line each; empty when they do not.
std::string ContextText(const Change& change);
// The report of the trace of one depth, under a heading.
std::string DepthText(const DepthComparison& depth, const Change& change);
// What the verdict rests on, in words, and a newline; empty when something was refused.
std::string ChangedLine(const Proof& proof);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_REPORT_TEXT_H_
