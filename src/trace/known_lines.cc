#include "trace/known_lines.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace assay::trace {
namespace {

constexpr std::string_view kBegin = "begin\n";
constexpr std::string_view kDispatch = "dispatch ";

// How many bytes two texts have in common at their beginning.
size_t CommonPrefix(const char* a, const char* b, size_t size) {
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t eight_a = 0, eight_b = 0;
    std::memcpy(&eight_a, a + i, 8);
    std::memcpy(&eight_b, b + i, 8);
    if (eight_a == eight_b) continue;
    if constexpr (std::endian::native == std::endian::little) {
      return i + static_cast<size_t>(std::countr_zero(eight_a ^ eight_b)) / 8;
    }
    break;
  }
  while (i < size && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

KnownLines::Run KnownLines::Pass(std::string_view text, bool inside) {
  Run run{.inside = inside};
  if (next_ >= lines_.size() || lines_[next_].inside != inside) return run;
  const size_t begin = begin_of(next_);
  const size_t same =
      CommonPrefix(text.data(), text_.data() + begin, std::min(text.size(), text_.size() - begin));
  const size_t first = next_;
  while (next_ < lines_.size() && lines_[next_].end <= begin + same) ++next_;
  if (next_ == first) return run;
  run.bytes = lines_[next_ - 1].end - begin;
  run.lines = next_ - first;
  const std::string_view last = text_of(next_ - 1);
  run.inside = last == kBegin || (lines_[next_ - 1].inside && last != "commit\n");
  return run;
}

void KnownLines::Take(std::string_view line, bool inside) {
  if (line == kBegin) {
    if (stale_) Truncate(0);
    stale_ = false;
    next_ = 0;
  }
  if (next_ < lines_.size()) {
    const std::string_view known = text_of(next_);
    const bool alike =
        lines_[next_].inside == inside &&
        (line == known || (line.starts_with(kDispatch) && known.starts_with(kDispatch)));
    if (alike) {
      if (line.size() == known.size()) {
        line.copy(text_.data() + begin_of(next_), line.size());
      } else {
        stale_ = true;
      }
      ++next_;
      return;
    }
    Truncate(next_);
  }
  if (lines_.size() >= kMaxLines || text_.size() + line.size() > kMaxBytes) return;
  text_ += line;
  lines_.push_back({.end = static_cast<uint32_t>(text_.size()), .inside = inside});
  ++next_;
}

void KnownLines::Truncate(size_t lines) {
  text_.resize(lines == 0 ? 0 : lines_[lines - 1].end);
  lines_.resize(lines);
  next_ = std::min(next_, lines);
}

}  // namespace assay::trace
