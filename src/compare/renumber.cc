#include "compare/renumber.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "compare/line_feed.h"
#include "compare/line_names.h"

namespace assay::compare {
namespace {

constexpr size_t kNoPartner = SIZE_MAX;

struct Buffer {
  uint64_t number = 0;
  // Of its lines within its declaration run, without its number, and of the run's place.
  uint64_t history = 0;
  size_t partner = kNoPartner;  // Index on the other side.
};

class Side {
 public:
  explicit Side(LineFeed feed) : feed_(std::move(feed)) { Advance(); }

  bool at_end() const { return !has_line_; }
  std::string_view line() const { return line_; }
  const Status& status() const { return feed_.status(); }
  uint64_t lines_passed() const { return lines_passed_; }
  void Advance() {
    ++lines_passed_;
    has_line_ = feed_.Next(&line_);
    if (has_line_) feed_.Release(line_);
  }

  // Reads the run that begins with the current line, which may be empty. The histories of its
  // buffers, in the order in which they were made; together they hold every line of it.
  std::vector<uint64_t> ReadRun(uint64_t run_number) {
    const size_t first = buffers_.size();
    for (; has_line_; Advance()) {
      LineNames names(line_);
      LineName name;
      if (IsBufferLine(line_) && names.Next(&name)) {
        index_.Set(name.number, buffers_.size());
        buffers_.push_back({name.number, run_number, kNoPartner});
      } else if (!IsHostUseLine(line_) || !names.Next(&name)) {
        break;
      }
      const size_t index = IndexOf(name.number);
      if (index == kNoPartner || index < first) break;
      uint64_t& history = buffers_[index].history;
      history = XXH3_64bits_withSeed(line_.data(), name.begin, history);
      history = XXH3_64bits_withSeed(line_.data() + name.end, line_.size() - name.end, history);
    }
    std::vector<uint64_t> histories;
    for (size_t i = first; i < buffers_.size(); ++i) histories.push_back(buffers_[i].history);
    return histories;
  }

  // kNoPartner for a number that no line has declared.
  size_t IndexOf(uint64_t number) const {
    const uint64_t index = index_.Find(number);
    return index == NumberMap::kNone ? kNoPartner : static_cast<size_t>(index);
  }
  std::vector<Buffer>& buffers() { return buffers_; }

 private:
  LineFeed feed_;
  std::string_view line_;
  bool has_line_ = false;
  uint64_t lines_passed_ = 0;
  NumberMap index_;
  std::vector<Buffer> buffers_;
};

class Search {
 public:
  Search(LineFeed a, LineFeed b) : a_(std::move(a)), b_(std::move(b)) {}

  Result<std::optional<Renumbering>> Run() {
    const bool same = SameLines();
    ASSAY_TRY(a_.status());
    ASSAY_TRY(b_.status());
    if (!same) return std::optional<Renumbering>();
    JoinUnused();
    Renumbering found{.buffers = a_.buffers().size(), .order_differs = order_differs_};
    for (const Buffer& buffer : a_.buffers()) {
      if (buffer.number != b_.buffers()[buffer.partner].number) ++found.renumbered;
    }
    return std::optional<Renumbering>(found);
  }

 private:
  bool SameLines() {
    for (uint64_t run = 0; !a_.at_end() && !b_.at_end(); ++run) {
      if (IsBufferLine(a_.line()) || IsBufferLine(b_.line())) {
        if (!SameRun(run)) return false;
        continue;
      }
      if (!SameLine(a_.line(), b_.line())) return false;
      a_.Advance();
      b_.Advance();
    }
    return a_.at_end() && b_.at_end();
  }

  bool SameRun(uint64_t run_number) {
    const uint64_t passed = a_.lines_passed() + b_.lines_passed();
    std::vector<uint64_t> run_a = a_.ReadRun(run_number), run_b = b_.ReadRun(run_number);
    // A line of a buffer without a number, or of one declared before, is none of a trace.
    if (a_.lines_passed() + b_.lines_passed() == passed) return false;
    order_differs_ = order_differs_ || run_a != run_b;
    std::ranges::sort(run_a);
    std::ranges::sort(run_b);
    return run_a == run_b;
  }

  bool SameLine(std::string_view line_a, std::string_view line_b) {
    LineNames names_a(line_a), names_b(line_b);
    size_t done_a = 0, done_b = 0;
    for (;;) {
      LineName a, b;
      const bool more_a = names_a.Next(&a), more_b = names_b.Next(&b);
      if (more_a != more_b) return false;
      if (!more_a) return line_a.substr(done_a) == line_b.substr(done_b);
      if (line_a.substr(done_a, a.begin - done_a) != line_b.substr(done_b, b.begin - done_b)) {
        return false;
      }
      if (a.is_kernel != b.is_kernel) return false;
      if (a.is_kernel ? a.number != b.number : !SameBuffer(a.number, b.number)) return false;
      done_a = a.end;
      done_b = b.end;
    }
  }

  bool SameBuffer(uint64_t number_a, uint64_t number_b) {
    const size_t index_a = a_.IndexOf(number_a), index_b = b_.IndexOf(number_b);
    if (index_a == kNoPartner || index_b == kNoPartner) {
      return index_a == index_b && number_a == number_b;
    }
    Buffer& a = a_.buffers()[index_a];
    Buffer& b = b_.buffers()[index_b];
    if (a.partner == index_b && b.partner == index_a) return true;
    if (a.partner != kNoPartner || b.partner != kNoPartner || a.history != b.history) return false;
    a.partner = index_b;
    b.partner = index_a;
    return true;
  }

  // Buffers that no line uses behind their run: any of the same history will do, so one of the same
  // number is taken where there is one.
  void JoinUnused() {
    const auto unused = [](std::vector<Buffer>& buffers) {
      std::vector<std::tuple<uint64_t, uint64_t, size_t>> list;  // History, number, index.
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i].partner == kNoPartner) {
          list.emplace_back(buffers[i].history, buffers[i].number, i);
        }
      }
      std::ranges::sort(list);
      return list;
    };
    auto join = [&](size_t i, size_t j) {
      a_.buffers()[i].partner = j;
      b_.buffers()[j].partner = i;
    };
    auto left_a = unused(a_.buffers()), left_b = unused(b_.buffers());
    for (size_t i = 0, j = 0; i < left_a.size() && j < left_b.size();) {
      const auto key_a = std::pair(std::get<0>(left_a[i]), std::get<1>(left_a[i]));
      const auto key_b = std::pair(std::get<0>(left_b[j]), std::get<1>(left_b[j]));
      if (key_a == key_b) join(std::get<2>(left_a[i]), std::get<2>(left_b[j]));
      if (key_a <= key_b) ++i;
      if (key_b <= key_a) ++j;
    }
    left_a = unused(a_.buffers());
    left_b = unused(b_.buffers());
    // The runs had equal histories, and so have their rests.
    for (size_t i = 0; i < left_a.size(); ++i) join(std::get<2>(left_a[i]), std::get<2>(left_b[i]));
  }

  Side a_, b_;
  bool order_differs_ = false;
};

}  // namespace

Result<std::optional<Renumbering>> FindRenumbering(const Input& a, const Input& b) {
  ASSAY_ASSIGN_OR_RETURN(LineFeed feed_a, LineFeed::Open(a));
  ASSAY_ASSIGN_OR_RETURN(LineFeed feed_b, LineFeed::Open(b));
  return Search(std::move(feed_a), std::move(feed_b)).Run();
}

}  // namespace assay::compare
