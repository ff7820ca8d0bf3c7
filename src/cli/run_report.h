// What `assay run` says of a text behind it: one JSON object, or a note with the speeds.
#ifndef ASSAY_CLI_RUN_REPORT_H_
#define ASSAY_CLI_RUN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/base.h"
#include "assay/llm.h"

#include "base/hash.h"

namespace assay::cli {

// Why generation ended; the word stands in the JSON.
enum class Stop : uint8_t { kLength, kEndOfText, kContext, kCancelled };

// A step that did not come to its end has no time.
struct Timings {
  double load_s = 0;
  std::optional<double> prompt_s;
  std::optional<double> decode_s;  // Also of a text that was stopped.
};

struct Generation {
  std::vector<llm::TokenId> prompt;
  std::vector<llm::TokenId> ids;
  size_t piece = 1;          // Of the prompt, fed at once.
  size_t decode_passes = 0;  // Feeds of a generated id; the last one is not fed.
  Stop stop = Stop::kLength;
  Timings timings;
  // Of the logits that each id was chosen from, with --json: two runs with one digest had the same
  // bits at every step.
  Hasher logits;
  bool logits_seen = false;
};

// `text` is that of the generated ids, `whole` what kept it from being whole. What was not measured
// is null.
std::string FormatRunJson(const Generation& generation, const std::string& text,
                          const Status& whole);

// "loaded in 0.012 s; prompt 5 tokens, 810.2 tok/s; generated 12 tokens, 903.1 tok/s", without a
// speed that was not measured.
std::string FormatRunNote(const Generation& generation);

}  // namespace assay::cli

#endif  // ASSAY_CLI_RUN_REPORT_H_
