#include "compare/align.h"

#include <algorithm>

namespace assay::compare {
namespace {

// Anchors within anchors; deeper nesting means that anchors do not help.
constexpr int kDeepest = 24;

struct Anchor {
  size_t a;
  size_t b;
};

struct Placed {
  Token token;
  size_t at;
};

// The tokens that stand exactly once, sorted by token.
std::vector<Placed> Unique(std::span<const Token> tokens) {
  std::vector<Placed> all(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) all[i] = {tokens[i], i};
  std::ranges::sort(all, {}, &Placed::token);
  std::vector<Placed> unique;
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end].token == all[i].token) ++end;
    if (end == i + 1) unique.push_back(all[i]);
    i = end;
  }
  return unique;
}

// The longest subsequence of `anchors`, which are sorted by a, whose b rises.
std::vector<Anchor> LongestRising(const std::vector<Anchor>& anchors) {
  constexpr size_t kNoPrevious = SIZE_MAX;
  std::vector<size_t> last_of_length;  // Index of the anchor with the least b.
  std::vector<size_t> previous(anchors.size(), kNoPrevious);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const auto place = std::ranges::lower_bound(last_of_length, anchors[i].b, {},
                                                [&](size_t index) { return anchors[index].b; });
    if (place != last_of_length.begin()) previous[i] = *std::prev(place);
    if (place == last_of_length.end()) {
      last_of_length.push_back(i);
    } else {
      *place = i;
    }
  }
  std::vector<Anchor> rising;
  for (size_t i = last_of_length.empty() ? kNoPrevious : last_of_length.back(); i != kNoPrevious;
       i = previous[i]) {
    rising.push_back(anchors[i]);
  }
  std::ranges::reverse(rising);
  return rising;
}

std::vector<Anchor> FindAnchors(std::span<const Token> a, std::span<const Token> b) {
  const std::vector<Placed> unique_a = Unique(a), unique_b = Unique(b);
  std::vector<Anchor> anchors;
  for (size_t i = 0, j = 0; i < unique_a.size() && j < unique_b.size();) {
    if (unique_a[i].token == unique_b[j].token) {
      anchors.push_back({unique_a[i++].at, unique_b[j++].at});
    } else if (unique_a[i].token < unique_b[j].token) {
      ++i;
    } else {
      ++j;
    }
  }
  std::ranges::sort(anchors, {}, &Anchor::a);
  return LongestRising(anchors);
}

class Aligner {
 public:
  Aligner(std::span<const Token> a, std::span<const Token> b) : a_(a), b_(b) {}

  std::vector<Match> Run() {
    Align(0, a_.size(), 0, b_.size(), 0);
    return std::move(matches_);
  }

 private:
  void Add(size_t a, size_t b, size_t size) {
    if (size == 0) return;
    if (!matches_.empty()) {
      Match& last = matches_.back();
      if (last.a + last.size == a && last.b + last.size == b) {
        last.size += size;
        return;
      }
    }
    matches_.push_back({a, b, size});
  }

  void Align(size_t a_begin, size_t a_end, size_t b_begin, size_t b_end, int depth) {
    const size_t prefix =
        CommonPrefix(a_.subspan(a_begin, a_end - a_begin), b_.subspan(b_begin, b_end - b_begin));
    Add(a_begin, b_begin, prefix);
    a_begin += prefix;
    b_begin += prefix;
    size_t suffix = 0;
    while (a_end > a_begin && b_end > b_begin && a_[a_end - 1] == b_[b_end - 1]) {
      --a_end;
      --b_end;
      ++suffix;
    }
    if (a_end > a_begin && b_end > b_begin) AlignUnlike(a_begin, a_end, b_begin, b_end, depth);
    Add(a_end, b_end, suffix);
  }

  void AlignUnlike(size_t a_begin, size_t a_end, size_t b_begin, size_t b_end, int depth) {
    const auto a = a_.subspan(a_begin, a_end - a_begin);
    const auto b = b_.subspan(b_begin, b_end - b_begin);
    EditPath path = FindEditPath(a, b, kExactEdits, Goal::kBothEnds);
    if (!path.reached && depth < kDeepest) {
      const std::vector<Anchor> anchors = FindAnchors(a, b);
      if (!anchors.empty()) {
        size_t a_done = 0, b_done = 0;
        for (const Anchor& anchor : anchors) {
          Align(a_begin + a_done, a_begin + anchor.a, b_begin + b_done, b_begin + anchor.b,
                depth + 1);
          Add(a_begin + anchor.a, b_begin + anchor.b, 1);
          a_done = anchor.a + 1;
          b_done = anchor.b + 1;
        }
        return Align(a_begin + a_done, a_end, b_begin + b_done, b_end, depth + 1);
      }
    }
    // Walks on from where each search stops; every step uses up at least its edits.
    for (;;) {
      for (const Match& match : path.matches) {
        Add(a_begin + match.a, b_begin + match.b, match.size);
      }
      if (path.reached) return;
      a_begin += path.a_end;
      b_begin += path.b_end;
      if (a_begin == a_end || b_begin == b_end) return;
      path = FindEditPath(a_.subspan(a_begin, a_end - a_begin),
                          b_.subspan(b_begin, b_end - b_begin), kExactEdits, Goal::kBothEnds);
    }
  }

  std::span<const Token> a_;
  std::span<const Token> b_;
  std::vector<Match> matches_;
};

}  // namespace

std::vector<Match> AlignTokens(std::span<const Token> a, std::span<const Token> b) {
  return Aligner(a, b).Run();
}

size_t CommonPrefix(std::span<const Token> a, std::span<const Token> b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

}  // namespace assay::compare
