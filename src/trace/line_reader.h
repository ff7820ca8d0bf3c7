// Cuts a source into lines in bounded memory and digests them as it goes.
#ifndef ASSAY_TRACE_LINE_READER_H_
#define ASSAY_TRACE_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "assay/base.h"
#include "assay/trace.h"

#include "base/hash.h"
#include "trace/source.h"

namespace assay::trace {

// One thread. Holds at most the longest line allowed and one block.
class LineReader final {
 public:
  static constexpr size_t kSlackBytes = 64;

  LineReader(std::unique_ptr<Source> source, const ReaderLimits& limits)
      : source_(std::move(source)), limits_(limits) {}

  // What Next found.
  enum class Found : uint8_t {
    kLine,      // line() is a whole line, without its newline.
    kUnended,   // line() is what stands behind the last newline: the file is cut.
    kEnd,       // Nothing is left.
    kTooLong,   // The line passes max_line_bytes.
    kTooLarge,  // The text passes max_bytes.
  };
  Result<Found> Next();

  // Valid until the next call of Next.
  std::string_view line() const { return line_; }
  // The same with the newline, of a line that Next found as kLine.
  std::string_view line_with_feed() const { return {line_.data(), line_.size() + 1}; }
  // What has been read and not been found as lines: lines, the last of which may be unended. A line
  // feed and readable bytes, kSlackBytes together, stand behind it. Valid until the next call of
  // Next.
  std::string_view Ahead() const { return {window_.get() + begin_, end_ - begin_}; }
  // Counts the first `bytes` of Ahead(), which are `lines` whole lines, as found. line() is gone.
  void Skip(size_t bytes, uint64_t lines) {
    begin_ += bytes;
    number_ += lines;
    line_ = {};
  }

  // Of the line last found, from 1.
  uint64_t number() const { return number_; }
  // Of all bytes before the line that Next found last.
  std::string DigestBeforeLine();

 private:
  // Reads more behind what is left; 0 at the end.
  Result<size_t> Refill();
  void DigestUpTo(size_t offset);

  std::unique_ptr<Source> source_;
  const ReaderLimits limits_;
  std::unique_ptr<char[]> window_;
  size_t capacity_ = 0;
  size_t read_bytes_ = 0;
  size_t begin_ = 0;     // Of the line that comes next.
  size_t end_ = 0;       // Of the bytes read.
  size_t digested_ = 0;  // At most the begin of the line last found.
  uint64_t total_bytes_ = 0;
  std::string_view line_;
  uint64_t number_ = 0;
  Hasher hasher_;
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_LINE_READER_H_
