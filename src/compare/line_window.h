// The next lines of one side with their tokens: what an alignment looks at.
#ifndef ASSAY_COMPARE_LINE_WINDOW_H_
#define ASSAY_COMPARE_LINE_WINDOW_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/line_feed.h"
#include "compare/pairing.h"

namespace assay::compare {

// The most text that one window holds.
inline constexpr size_t kMaxWindowBytes = size_t{64} << 20;

class LineWindow final {
 public:
  // `names` must outlive it.
  LineWindow(LineFeed feed, const SideNames& names) : feed_(std::move(feed)), tokenizer_(names) {}

  // Takes lines in until there are `lines`, the trace ends or kMaxWindowBytes are held.
  void Fill(size_t lines);
  // Whether the trace ends with the last line of the window.
  bool ended() const { return ended_; }
  // Whether no further line fits.
  bool full() const { return bytes_ >= kMaxWindowBytes; }

  size_t size() const { return tokens_.size() - head_; }
  std::span<const Token> tokens() const { return std::span(tokens_).subspan(head_); }
  std::span<const std::string_view> texts() const { return std::span(texts_).subspan(head_); }
  void Pop(size_t lines);

  // The lines behind an empty window, raw.
  LineFeed& feed() { return feed_; }

 private:
  LineFeed feed_;
  LineTokenizer tokenizer_;
  // Lines before head_ are popped; they are removed when they are the larger part.
  std::vector<Token> tokens_;
  std::vector<std::string_view> texts_;
  size_t head_ = 0;
  size_t bytes_ = 0;
  bool ended_ = false;
};

}  // namespace assay::compare

#endif  // ASSAY_COMPARE_LINE_WINDOW_H_
