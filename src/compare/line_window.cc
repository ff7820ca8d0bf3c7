#include "compare/line_window.h"

namespace assay::compare {

void LineWindow::Fill(size_t lines) {
  std::string_view line;
  while (size() < lines && !ended_ && !full()) {
    if (!feed_.Next(&line)) {
      ended_ = true;
      return;
    }
    tokens_.push_back(tokenizer_(line));
    texts_.push_back(line);
    bytes_ += line.size();
  }
  // A trace that ends just behind the window must be seen to end.
  ended_ = ended_ || feed_.Ahead().empty();
}

void LineWindow::Pop(size_t lines) {
  for (const std::string_view text : texts().first(lines)) bytes_ -= text.size();
  const std::string_view last_popped = lines > 0 ? texts()[lines - 1] : std::string_view();
  head_ += lines;
  if (size() > 0) {
    feed_.Release(texts().front());
  } else if (lines > 0) {
    feed_.Release(last_popped);
  }
  if (head_ < tokens_.size() - head_) return;
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(head_));
  texts_.erase(texts_.begin(), texts_.begin() + static_cast<ptrdiff_t>(head_));
  head_ = 0;
}

}  // namespace assay::compare
