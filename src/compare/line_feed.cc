#include "compare/line_feed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/parse.h"

namespace assay::compare {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

}  // namespace

Result<LineFeed> LineFeed::Open(const Input& input) {
  ASSAY_ASSIGN_OR_RETURN(auto source, input.OpenText());
  LineFeed feed(std::move(source));
  // The first line says the version, which is no event.
  std::string_view version_line;
  feed.Next(&version_line);
  ASSAY_TRY(feed.status_);
  return feed;
}

bool LineFeed::Next(std::string_view* line) {
  const std::string_view ahead = Ahead();
  if (ahead.empty()) return false;
  *line = ahead.substr(0, ahead.find('\n'));
  Skip(line->size() + 1);
  return true;
}

std::string_view LineFeed::Ahead() {
  if (lines_.empty() && !ended_) Refill();
  return lines_;
}

void LineFeed::Skip(size_t bytes) { lines_.remove_prefix(bytes); }

void LineFeed::Release(std::string_view first_needed) {
  while (blocks_.size() > 1 && !blocks_.front().Holds(first_needed.data())) blocks_.pop_front();
}

void LineFeed::ReleaseAll() {
  while (blocks_.size() > 1) blocks_.pop_front();
}

void LineFeed::Refill() {
  Block block{.bytes = nullptr, .capacity = partial_.size() + kReadBytes};
  block.bytes = std::make_unique_for_overwrite<char[]>(block.capacity);
  size_t filled = partial_.copy(block.bytes.get(), partial_.size());
  size_t line_end = 0;  // Behind the last newline.
  // A source may give little at a time; a block should hold more than that.
  while (line_end == 0 || filled < kReadBytes / 2) {
    if (filled == block.capacity) {
      Block larger{.bytes = nullptr, .capacity = 2 * block.capacity};
      larger.bytes = std::make_unique_for_overwrite<char[]>(larger.capacity);
      std::memcpy(larger.bytes.get(), block.bytes.get(), filled);
      block = std::move(larger);
    }
    auto got = source_->Read(block.bytes.get() + filled, block.capacity - filled);
    if (!got) status_ = Fail(got.error());
    if (!got || *got == 0) {
      ended_ = true;
      break;
    }
    const std::string_view fresh(block.bytes.get() + filled, *got);
    filled += *got;
    if (const size_t at = fresh.rfind('\n'); at != std::string_view::npos) {
      line_end = filled - fresh.size() + at + 1;
    }
  }
  lines_ = {block.bytes.get(), line_end};
  partial_ = {block.bytes.get() + line_end, filled - line_end};
  blocks_.push_back(std::move(block));

  // The trace is whole, so the end line is the last and nothing follows it.
  if (lines_.empty()) return;
  const size_t last = lines_.size() < 2 ? 0 : lines_.rfind('\n', lines_.size() - 2) + 1;
  if (trace::IsEndLine(lines_.substr(last, lines_.size() - 1 - last))) {
    lines_ = lines_.substr(0, last);
    ended_ = true;
  }
}

}  // namespace assay::compare
