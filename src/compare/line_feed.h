// The events of a whole trace, line by line, as text.
#ifndef ASSAY_COMPARE_LINE_FEED_H_
#define ASSAY_COMPARE_LINE_FEED_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>

#include "assay/base.h"

#include "compare/input.h"

namespace assay::compare {

// Gives the lines between the first and the end line, without newlines. What goes wrong below shows
// as an early end; status() says so. One thread.
class LineFeed final {
 public:
  // Errors: what opening or reading fails with.
  static Result<LineFeed> Open(const Input& input);

  // False at the end. The line stays valid until it is released.
  bool Next(std::string_view* line);
  // Lines that begin before `first_needed` (a line that Next gave) are not needed any more; without
  // it, no line given so far is.
  void Release(std::string_view first_needed);
  void ReleaseAll();

  // The whole lines that are in memory and not given yet, each with its newline; reads more when
  // there are none. Empty at the end.
  std::string_view Ahead();
  // Passes over the first `bytes` of Ahead(), which end in a newline.
  void Skip(size_t bytes);

  const Status& status() const { return status_; }

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t capacity = 0;
    bool Holds(const char* at) const { return bytes.get() <= at && at < bytes.get() + capacity; }
  };

  explicit LineFeed(std::unique_ptr<trace::Source> source) : source_(std::move(source)) {}
  // Reads until there are whole lines; they begin with the part of a line that was left.
  void Refill();

  std::unique_ptr<trace::Source> source_;
  std::deque<Block> blocks_;  // The last holds lines_ and partial_.
  std::string_view lines_;    // Whole lines not given yet.
  std::string_view partial_;  // Behind them.
  bool ended_ = false;
  Status status_;
};

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_LINE_FEED_H_
