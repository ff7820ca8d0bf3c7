// Alignment of two sequences of tokens that lie in memory.
//
// Short edit scripts are found exactly; longer ones are cut at tokens that stand once on both sides
// (the patience method of B. Cohen, as used by version control systems), and what has no such token
// is walked in bounded steps. The time is near-linear for any input, and the result is good rather
// than shortest where there are very many differences.
#ifndef ASSAY_COMPARE_ALIGN_H_
#define ASSAY_COMPARE_ALIGN_H_

#include <span>
#include <vector>

#include "compare/myers.h"

namespace assay::compare {

// The edits that an exact search may spend before anchors are tried.
inline constexpr size_t kExactEdits = 128;

// Matches in order, none empty; what lies between two is unlike.
std::vector<Match> AlignTokens(std::span<const Token> a, std::span<const Token> b);

// The number of leading tokens that are equal.
size_t CommonPrefix(std::span<const Token> a, std::span<const Token> b);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_ALIGN_H_
