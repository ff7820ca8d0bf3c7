// What one token costs in dispatches, barriers, bytes bound and commits, read from traces; and the
// file that such counts are held against.
#ifndef ASSAY_PROVE_COUNTS_H_
#define ASSAY_PROVE_COUNTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"

namespace assay::prove {

// Sums over the last tokens of a trace.
struct TokenCounts {
  uint64_t tokens = 0;
  uint64_t dispatches = 0;
  uint64_t barriers = 0;
  uint64_t bytes_bound = 0;  // Of all accesses of all dispatches, each counted.
  uint64_t commits = 0;
  bool operator==(const TokenCounts&) const = default;
};

// By name: "depth-600" in a folder of evidence, "trace" for a trace.
using CountsByTrace = std::map<std::string, TokenCounts>;

// Counts a trace: a token is what is committed between two waits, and counted are the last
// `meta steps` of them, or all where the trace does not say. Errors: those of reading; kFormat for
// a refused trace and for one without that many.
// `stop` is trace::ReaderLimits'.
Result<TokenCounts> CountTokens(const std::string& path, const std::function<bool()>& stop = {});
// Of a trace, or of each trace in a folder of evidence.
Result<CountsByTrace> ReadCountsOf(const std::string& path, const std::function<bool()>& stop = {});

// The file, JSON with stable key order, ending in a newline.
std::string FormatCountsJson(const CountsByTrace& counts);
// The reverse. Errors: kFormat, naming the member and the command that writes the file again from
// `counted`.
Result<CountsByTrace> ParseCountsJson(std::string_view text, const std::string& path,
                                      std::string_view counted = "PATH");

// For people: a line for each trace, a token's share of each count.
std::string FormatCountsText(const CountsByTrace& counts);

struct CountsCheck {
  std::vector<std::string> risen;  // Sentences.
  std::vector<std::string> fallen;
};
// Holds `found` against `allowed`, a token's share against a token's share. Error kInvalidArgument
// where the two are not about the same traces.
Result<CountsCheck> CheckCounts(const CountsByTrace& found, const CountsByTrace& allowed);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_COUNTS_H_
