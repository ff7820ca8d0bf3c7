#include "hazard/piece.h"

#include <algorithm>
#include <tuple>

namespace assay::hazard {
namespace {

bool OneFinding(const Piece& a, const Piece& b) {
  return a.first == b.first && a.buffer == b.buffer && a.rule == b.rule;
}

// Joins what overlaps or touches in pieces[begin, end), which are sorted by place and alike but for
// their ranges, and appends the result to `out`.
void AppendUnion(const std::vector<Piece>& pieces, size_t begin, size_t end,
                 std::vector<Piece>* out) {
  for (size_t i = begin; i < end; ++i) {
    if (i > begin && pieces[i].range.begin <= out->back().range.end) {
      out->back().range.end = std::max(out->back().range.end, pieces[i].range.end);
    } else {
      out->push_back(pieces[i]);
    }
  }
}

// Appends to `out` what is in `possible` and not in `certain`; both are unions in order.
void AppendDifference(const std::vector<Piece>& possible, const std::vector<Piece>& certain,
                      std::vector<Piece>* out) {
  size_t c = 0;
  for (Piece piece : possible) {
    while (c < certain.size() && certain[c].range.end <= piece.range.begin) ++c;
    for (size_t i = c; i < certain.size() && certain[i].range.begin < piece.range.end; ++i) {
      if (certain[i].range.begin > piece.range.begin) {
        Piece before = piece;
        before.range.end = certain[i].range.begin;
        out->push_back(before);
      }
      piece.range.begin = certain[i].range.end;
    }
    if (!piece.range.empty()) out->push_back(piece);
  }
}

}  // namespace

void MergePieces(std::vector<Piece>* pieces) {
  if (pieces->size() < 2) return;
  const auto key = [](const Piece& piece) {
    return std::tuple(piece.first, piece.buffer, piece.rule, !piece.certain, piece.range.begin);
  };
  std::sort(pieces->begin(), pieces->end(),
            [&key](const Piece& a, const Piece& b) { return key(a) < key(b); });
  std::vector<Piece> merged;
  std::vector<Piece> certain;
  std::vector<Piece> possible;
  for (size_t begin = 0; begin < pieces->size();) {
    size_t end = begin;
    while (end < pieces->size() && OneFinding((*pieces)[begin], (*pieces)[end])) ++end;
    size_t split = begin;
    while (split < end && (*pieces)[split].certain) ++split;
    if ((*pieces)[begin].buffer == kAllMemory) {
      merged.push_back((*pieces)[begin]);
    } else {
      certain.clear();
      possible.clear();
      AppendUnion(*pieces, begin, split, &certain);
      AppendUnion(*pieces, split, end, &possible);
      merged.insert(merged.end(), certain.begin(), certain.end());
      AppendDifference(possible, certain, &merged);
    }
    begin = end;
  }
  *pieces = std::move(merged);
}

}  // namespace assay::hazard
