// A long trace for measurements: a decode of a model of 28 layers, and variants of it.
#ifndef ASSAY_BENCH_SAMPLE_TRACE_H_
#define ASSAY_BENCH_SAMPLE_TRACE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "assay/trace.h"

namespace assay::bench {

enum class SampleVariant : uint8_t {
  kPlain,
  kRenumbered,      // Every buffer is made in another order, so that nearly every number differs.
  kInserted,        // One dispatch and its barrier more, in the middle.
  kChanged,         // One argument of one dispatch is another, in the middle.
  kInsertedBuffer,  // One buffer more, made first, which shifts the number of every other.
  kManyChanges,     // One dispatch in a hundred has another argument.
};
// By the word used on command lines: "plain", "renumbered", "inserted", "changed",
// "inserted-buffer", "many-changes".
std::optional<SampleVariant> ParseSampleVariant(std::string_view word);

// Writes a program of about `lines` lines and closes the trace.
Status WriteSample(trace::TraceWriter* writer, uint64_t lines, SampleVariant variant);

}  // namespace assay::bench

#endif  // ASSAY_BENCH_SAMPLE_TRACE_H_
