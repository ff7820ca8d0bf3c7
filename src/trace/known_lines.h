// The lines of the last command buffer and of what followed it, remembered as text: a program that
// repeats itself, as a decode does, repeats most of their bytes.
#ifndef ASSAY_TRACE_KNOWN_LINES_H_
#define ASSAY_TRACE_KNOWN_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::trace {

// Told of each line of a trace in order. Only lines that can be repeated may be given to it: one
// that was right once is right again wherever as much is declared, no refusal stands before it, and
// a command buffer is open exactly if one was. So a line that declares something is kept away.
//
// One thread. Holds at most kMaxBytes of text.
class KnownLines final {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;
  static constexpr size_t kMaxLines = size_t{1} << 15;

  struct Run {
    size_t bytes = 0;
    uint64_t lines = 0;
    bool inside = false;  // Whether a command buffer is open behind them.
  };
  // The longest run of whole lines that `text` begins with and that is known to stand here, when a
  // command buffer is open (`inside`) or not. Goes on behind them.
  Run Pass(std::string_view text, bool inside);

  // `line`, its line feed included, is right and stands here, before which a command buffer is open
  // (`inside`) or not. Goes on behind it.
  void Take(std::string_view line, bool inside);

 private:
  struct Line {
    uint32_t end = 0;  // In text_.
    bool inside = false;
  };
  size_t begin_of(size_t line) const { return line == 0 ? 0 : lines_[line - 1].end; }
  std::string_view text_of(size_t line) const {
    return std::string_view(text_).substr(begin_of(line), lines_[line].end - begin_of(line));
  }
  void Truncate(size_t lines);

  std::string text_;
  std::vector<Line> lines_;
  size_t next_ = 0;     // The line that is expected to stand here.
  bool stale_ = false;  // A line came that could not replace the one that is remembered.
};

}  // namespace assay::trace

#endif  // ASSAY_TRACE_KNOWN_LINES_H_
