#include "compare/myers.h"

#include <algorithm>

namespace assay::compare {
namespace {

constexpr int64_t kNone = -1;

class Search {
 public:
  Search(std::span<const Token> a, std::span<const Token> b, size_t max_edits, Goal goal)
      : a_(a),
        b_(b),
        max_edits_(static_cast<int64_t>(std::min(max_edits, a.size() + b.size()))),
        goal_(goal) {}

  EditPath Run() {
    int64_t best_edits = 0, best_diagonal = 0, best_sum = kNone;
    for (int64_t edits = 0; edits <= max_edits_; ++edits) {
      rows_.emplace_back(static_cast<size_t>(edits) + 1, kNone);
      for (int64_t diagonal = -edits; diagonal <= edits; diagonal += 2) {
        const int64_t start = Start(edits, diagonal);
        if (start == kNone) continue;
        const int64_t x = Slide(start, diagonal);
        const int64_t y = x - diagonal;
        Furthest(edits, diagonal) = x;
        if (x + y > best_sum) {
          best_sum = x + y;
          best_edits = edits;
          best_diagonal = diagonal;
        }
        if (Reached(x, y)) return Trace(edits, diagonal, true);
      }
    }
    return Trace(best_edits, best_diagonal, false);
  }

 private:
  // rows_[d] holds, for the diagonals -d, -d+2, ... d, how far in `a` a path of d edits comes.
  int64_t& Furthest(int64_t edits, int64_t diagonal) {
    return rows_[static_cast<size_t>(edits)][static_cast<size_t>((diagonal + edits) / 2)];
  }
  int64_t FurthestOrNone(int64_t edits, int64_t diagonal) {
    return diagonal < -edits || diagonal > edits ? kNone : Furthest(edits, diagonal);
  }

  // Where the path on `diagonal` begins after its last edit; kNone when there is none.
  int64_t Start(int64_t edits, int64_t diagonal) {
    if (edits == 0) return 0;
    // A line of b inserted comes from the diagonal above, a line of a deleted from the one below.
    const int64_t above = FurthestOrNone(edits - 1, diagonal + 1);
    const int64_t inserted = above != kNone && above - diagonal <= Size(b_) ? above : kNone;
    const int64_t below = FurthestOrNone(edits - 1, diagonal - 1);
    const int64_t deleted = below != kNone && below + 1 <= Size(a_) ? below + 1 : kNone;
    return std::max(inserted, deleted);
  }

  int64_t Slide(int64_t x, int64_t diagonal) const {
    int64_t y = x - diagonal;
    while (x < Size(a_) && y < Size(b_) &&
           a_[static_cast<size_t>(x)] == b_[static_cast<size_t>(y)]) {
      ++x;
      ++y;
    }
    return x;
  }

  bool Reached(int64_t x, int64_t y) const {
    const bool a_done = x == Size(a_), b_done = y == Size(b_);
    return goal_ == Goal::kBothEnds ? a_done && b_done : a_done || b_done;
  }

  EditPath Trace(int64_t edits, int64_t diagonal, bool reached) {
    EditPath path{.reached = reached, .a_end = 0, .b_end = 0, .matches = {}};
    path.a_end = static_cast<size_t>(Furthest(edits, diagonal));
    path.b_end = static_cast<size_t>(Furthest(edits, diagonal) - diagonal);
    for (;; --edits) {
      const int64_t end = Furthest(edits, diagonal);
      const int64_t start = Start(edits, diagonal);
      if (end > start) {
        path.matches.push_back({.a = static_cast<size_t>(start),
                                .b = static_cast<size_t>(start - diagonal),
                                .size = static_cast<size_t>(end - start)});
      }
      if (edits == 0) break;
      const int64_t above = FurthestOrNone(edits - 1, diagonal + 1);
      diagonal += above == start && above - diagonal <= Size(b_) ? 1 : -1;
    }
    std::ranges::reverse(path.matches);
    return path;
  }

  static int64_t Size(std::span<const Token> tokens) { return static_cast<int64_t>(tokens.size()); }

  std::span<const Token> a_;
  std::span<const Token> b_;
  const int64_t max_edits_;
  const Goal goal_;
  std::vector<std::vector<int64_t>> rows_;
};

}  // namespace

EditPath FindEditPath(std::span<const Token> a, std::span<const Token> b, size_t max_edits,
                      Goal goal) {
  return Search(a, b, max_edits, goal).Run();
}

}  // namespace assay::compare
