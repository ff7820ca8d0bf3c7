// The alignment of two whole traces, streamed.
//
// Equal stretches are passed over as they come. Where the lines differ, a window of each side is
// aligned, small at first and larger when it holds too little that is alike: a few edits are found
// exactly, more are cut at lines that stand once in both windows. Only what lies before the last
// reliable match is settled; the rest belongs to the next window. An insertion or a removal longer
// than the largest window (a million lines) is not seen as one.
#ifndef ASSAY_COMPARE_DIFFER_H_
#define ASSAY_COMPARE_DIFFER_H_

#include <span>
#include <string_view>

#include "assay/base.h"

#include "compare/line_window.h"

namespace assay::compare {

// Gets the aligned streams from beginning to end, every line once.
class DiffSink {
 public:
  using Lines = std::span<const std::string_view>;
  virtual ~DiffSink() = default;
  // Lines that are equal one by one, up to the numbers of paired names; as many of both.
  virtual void Equal(Lines a, Lines b) = 0;
  // Lines that are the same bytes on both sides, each with its newline.
  virtual void EqualBytes(std::string_view lines) = 0;
  // Lines of which none is matched; one of the two may be empty.
  virtual void Unlike(Lines a, Lines b) = 0;
};

// `same_numbers`: equal bytes are equal lines, whatever names are in them. Errors: what reading
// fails with.
Status StreamDifferences(LineWindow* a, LineWindow* b, bool same_numbers, DiffSink* sink);

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_DIFFER_H_
