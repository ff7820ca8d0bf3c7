#include "trace/line_reader.h"

#include <algorithm>
#include <cstring>

namespace assay::trace {
namespace {

// Reads begin small, so that a small trace costs little, and grow.
constexpr size_t kFirstReadBytes = size_t{1} << 16;
constexpr size_t kReadBytes = size_t{1} << 20;

}  // namespace

Result<LineReader::Found> LineReader::Next() {
  ++number_;
  line_ = {};
  size_t searched = begin_;
  for (;;) {
    const void* newline =
        end_ > searched ? std::memchr(window_.get() + searched, '\n', end_ - searched) : nullptr;
    if (newline != nullptr) {
      const auto at = static_cast<size_t>(static_cast<const char*>(newline) - window_.get());
      line_ = {window_.get() + begin_, at - begin_};
      begin_ = at + 1;
      return line_.size() > limits_.max_line_bytes ? Found::kTooLong : Found::kLine;
    }
    const size_t kept = end_ - begin_;
    if (kept > limits_.max_line_bytes) return Found::kTooLong;
    ASSAY_ASSIGN_OR_RETURN(const size_t got, Refill());
    if (total_bytes_ > limits_.max_bytes) return Found::kTooLarge;
    searched = begin_ + kept;
    if (got > 0) continue;
    line_ = {window_.get() + begin_, kept};
    begin_ = end_;
    return kept > 0 ? Found::kUnended : Found::kEnd;
  }
}

Result<size_t> LineReader::Refill() {
  // What is left moves to the front; everything before it has been found and is digested now.
  DigestUpTo(begin_);
  const size_t kept = end_ - begin_;
  read_bytes_ = std::clamp(2 * read_bytes_, kFirstReadBytes, kReadBytes);
  if (kept + read_bytes_ > capacity_) {
    capacity_ = std::max(kept, read_bytes_) + read_bytes_;
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ + kSlackBytes);
    if (kept > 0) std::memcpy(larger.get(), window_.get() + begin_, kept);
    window_ = std::move(larger);
  } else if (kept > 0) {
    std::memmove(window_.get(), window_.get() + begin_, kept);
  }
  begin_ = 0;
  end_ = kept;
  digested_ = 0;
  ASSAY_ASSIGN_OR_RETURN(const size_t got, source_->Read(window_.get() + end_, read_bytes_));
  end_ += got;
  std::fill_n(window_.get() + end_, kSlackBytes, '\n');
  total_bytes_ += got;
  return got;
}

void LineReader::DigestUpTo(size_t offset) {
  if (offset <= digested_) return;
  hasher_.Update(std::string_view(window_.get() + digested_, offset - digested_));
  digested_ = offset;
}

std::string LineReader::DigestBeforeLine() {
  DigestUpTo(static_cast<size_t>(line_.data() - window_.get()));
  return hasher_.HexDigest();
}

}  // namespace assay::trace
