// The aligned events of two traces as data for the page of a report: every event of both, row by
// row, with the kind of each difference.
#ifndef ASSAY_PROVE_ALIGNED_STREAMS_H_
#define ASSAY_PROVE_ALIGNED_STREAMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "assay/base.h"

namespace assay::prove {

// What a row shows; the value is its letter in the data.
enum class RowKind : char {
  kSame = 's',
  kNumbering = 'n',  // Equal but for the numbers of names.
  kBarrier = 'b',    // A barrier that one side alone has.
  kAdded = 'a',
  kRemoved = 'r',
  kMoved = 'm',      // Both sides have the event, in different places.
  kConstants = 'c',  // Constants or dynamic shared memory.
  kGrid = 'g',
  kBindings = 'i',  // Buffers, ranges or accesses.
  kKernel = 'k',    // Another kernel, or other code under its name.
  kOther = 'o',     // Buffers made or freed, host accesses, borders, facts of the run.
};

struct StreamRequest {
  std::string name;  // Of the part.
  std::string path_a, path_b;
  uint64_t max_rows = 0;
  std::function<bool()> stop = {};
};

// One JSON object that is safe inside an element of a page: ASCII, without '<', '>' and '&'.
//
//   name            the part's
//   kinds           a letter a row
//   a, b            by row: the index in `events` of each side's event, -1: it has none; b is null
//                   where it equals a
//   events          [0, kernel, x, y, z, shared, constants, access...] of a dispatch, where access
//                   is an index in `accesses`; others begin with their number in the page's script
//   accesses        [access * 2 + exact, buffer, begin, end]
//   side_a, side_b  what the numbers in events stand for: buffers [bytes, kind, label] and kernels
//                   [name, digest, workgroup, specialisation, shared bytes]; side_b is null where
//                   it equals side_a
//   moves           pairs of rows that show one event
//   cut             why rows are missing at the end; empty when none are
//
// Errors: those of reading; kIo when the traces are no longer the ones that were compared;
// kCancelled.
Result<std::string> AlignedStreamsJson(const StreamRequest& request);

// `text` as a JSON string for a page; what a terminal must not show is escaped as base/text.h does.
std::string PageString(std::string_view text);

}  // namespace assay::prove

#endif  // ASSAY_PROVE_ALIGNED_STREAMS_H_
