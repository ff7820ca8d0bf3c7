#include "compare/differ.h"

#include <algorithm>
#include <cstring>

#include "compare/align.h"

namespace assay::compare {
namespace {

constexpr size_t kSmallWindow = 4096;
constexpr size_t kMiddleWindow = size_t{64} << 10;
constexpr size_t kLargeWindow = size_t{1} << 20;
// Lines tokenized at a time while the sides are equal.
constexpr size_t kStride = 256;
// A match of so many lines is no accident.
constexpr size_t kReliable = 8;
bool IsReliable(const Match& match) { return match.size >= kReliable; }

// The length of the common beginning of two texts, in whole lines.
size_t CommonLines(std::string_view a, std::string_view b) {
  constexpr size_t kStep = 4096;
  const size_t most = std::min(a.size(), b.size());
  size_t same = 0;
  while (same + kStep <= most && std::memcmp(a.data() + same, b.data() + same, kStep) == 0) {
    same += kStep;
  }
  while (same < most && a[same] == b[same]) ++same;
  return same == 0 ? 0 : a.rfind('\n', same - 1) + 1;
}

class Differ {
 public:
  Differ(LineWindow* a, LineWindow* b, bool same_numbers, DiffSink* sink)
      : a_(*a), b_(*b), same_numbers_(same_numbers), sink_(*sink) {}

  Status Run() {
    // Where the traces begin with the same bytes they declare the same names.
    SkipSameBytes();
    for (;;) {
      SkipEqual();
      if (a_.size() == 0 || b_.size() == 0) break;
      AlignHere();
    }
    while (a_.size() > 0 || b_.size() > 0) {
      Settle({}, a_.size(), b_.size());
      a_.Fill(kSmallWindow);
      b_.Fill(kSmallWindow);
    }
    ASSAY_TRY(a_.feed().status());
    return b_.feed().status();
  }

 private:
  void SkipSameBytes() {
    for (;;) {
      const std::string_view ahead_a = a_.feed().Ahead();
      const size_t same = CommonLines(ahead_a, b_.feed().Ahead());
      if (same == 0) return;
      sink_.EqualBytes(ahead_a.substr(0, same));
      for (LineWindow* side : {&a_, &b_}) {
        side->feed().Skip(same);
        side->feed().ReleaseAll();
      }
    }
  }

  void SkipEqual() {
    for (;;) {
      if (a_.size() == 0 && b_.size() == 0 && same_numbers_) SkipSameBytes();
      a_.Fill(kStride);
      b_.Fill(kStride);
      const size_t same = CommonPrefix(a_.tokens(), b_.tokens());
      if (same > 0) {
        sink_.Equal(a_.texts().first(same), b_.texts().first(same));
        a_.Pop(same);
        b_.Pop(same);
      }
      // One that is used up is filled again first: only the end of a trace leaves it empty.
      const bool more = (a_.size() == 0 && !a_.ended()) || (b_.size() == 0 && !b_.ended());
      if (!more) return;
    }
  }

  // The windows begin with unlike lines. Settles some lines of at least one side.
  void AlignHere() {
    a_.Fill(kSmallWindow);
    b_.Fill(kSmallWindow);
    if (AlignExactly()) return;
    for (const size_t window : {kMiddleWindow, kLargeWindow}) {
      a_.Fill(window);
      b_.Fill(window);
      const std::vector<Match> matches = AlignTokens(a_.tokens(), b_.tokens());
      // Short matches are of lines that stand everywhere and say nothing about the rest.
      size_t matched = 0;
      for (const Match& match : matches) matched += IsReliable(match) ? match.size : 0;
      const bool no_more = (a_.ended() || a_.full()) && (b_.ended() || b_.full());
      const bool good = 4 * matched >= std::min(a_.size(), b_.size());
      if (good || no_more || window == kLargeWindow) return SettleReliable(matches);
    }
  }

  bool AlignExactly() {
    const bool whole = a_.ended() && b_.ended();
    const EditPath path = FindEditPath(a_.tokens(), b_.tokens(), kExactEdits,
                                       whole ? Goal::kBothEnds : Goal::kEitherEnd);
    const bool sure = whole || std::ranges::any_of(path.matches, IsReliable);
    if (!path.reached || !sure) return false;
    SettleReliable(path.matches);
    return true;
  }

  // Settles what the matches say. Unless both windows hold their traces' ends, what stands behind
  // the last reliable match is left for the next window.
  void SettleReliable(std::vector<Match> matches) {
    if (a_.ended() && b_.ended()) return Settle(matches, a_.size(), b_.size());
    const auto reliable = std::find_if(matches.rbegin(), matches.rend(), IsReliable);
    if (reliable != matches.rend()) matches.erase(reliable.base(), matches.end());
    if (matches.empty()) return Settle(matches, a_.size(), b_.size());
    Settle(matches, matches.back().a + matches.back().size, matches.back().b + matches.back().size);
  }

  // Where one side alone has lines between two matches, often several stretches of the same content
  // could be those lines. Moves each to where it begins between command buffers, if it can; a match
  // is never used up, so that other stretches keep their content.
  void MoveToBorders(std::vector<Match>* matches) const {
    for (size_t i = 1; i < matches->size(); ++i) {
      Match& before = (*matches)[i - 1];
      Match& behind = (*matches)[i];
      const size_t a = before.a + before.size, b = before.b + before.size;
      int64_t move = 0;
      if (a == behind.a && b < behind.b) move = BestMove(b_, b, behind.b, before, behind);
      if (b == behind.b && a < behind.a) move = BestMove(a_, a, behind.a, before, behind);
      // Unsigned sums wrap to what a negative move means.
      const auto lines = static_cast<size_t>(move);
      before.size += lines;
      behind.a += lines;
      behind.b += lines;
      behind.size -= lines;
    }
  }

  // How well a stretch begins with this line: best with a command buffer, at worst inside one.
  static int BorderRank(std::string_view line) {
    if (line == "begin") return 2;
    return line == "commit" || line == "barrier" || IsDispatchLine(line) ? 0 : 1;
  }

  // By how many lines the stretch [begin, end) of one side moves, down for a positive number: to
  // the best place that is better than where it is; of several, the furthest down.
  static int64_t BestMove(const LineWindow& side, size_t begin, size_t end, const Match& before,
                          const Match& behind) {
    const auto tokens = side.tokens();
    const auto texts = side.texts();
    int best = BorderRank(texts[begin]);
    const int here = best;
    size_t best_down = 0;
    for (size_t down = 1; down < behind.size && tokens[begin + down - 1] == tokens[end + down - 1];
         ++down) {
      const int rank = BorderRank(texts[begin + down]);
      if (rank <= here || rank < best) continue;
      best = rank;
      best_down = down;
    }
    size_t best_up = 0;
    for (size_t up = 1; up < before.size && tokens[begin - up] == tokens[end - up]; ++up) {
      const int rank = BorderRank(texts[begin - up]);
      if (rank <= best) continue;
      best = rank;
      best_up = up;
    }
    return best_up > 0 ? -static_cast<int64_t>(best_up) : static_cast<int64_t>(best_down);
  }

  void Settle(std::vector<Match> matches, size_t a_end, size_t b_end) {
    MoveToBorders(&matches);
    const auto texts_a = a_.texts(), texts_b = b_.texts();
    size_t a = 0, b = 0;
    const auto unlike_up_to = [&](size_t a_next, size_t b_next) {
      if (a_next > a || b_next > b) {
        sink_.Unlike(texts_a.subspan(a, a_next - a), texts_b.subspan(b, b_next - b));
      }
    };
    for (const Match& match : matches) {
      unlike_up_to(match.a, match.b);
      sink_.Equal(texts_a.subspan(match.a, match.size), texts_b.subspan(match.b, match.size));
      a = match.a + match.size;
      b = match.b + match.size;
    }
    unlike_up_to(a_end, b_end);
    a_.Pop(a_end);
    b_.Pop(b_end);
  }

  LineWindow& a_;
  LineWindow& b_;
  const bool same_numbers_;
  DiffSink& sink_;
};

}  // namespace

Status StreamDifferences(LineWindow* a, LineWindow* b, bool same_numbers, DiffSink* sink) {
  return Differ(a, b, same_numbers, sink).Run();
}

}  // namespace assay::compare
