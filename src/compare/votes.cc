#include "compare/votes.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compare/differ.h"
#include "compare/line_feed.h"
#include "compare/line_window.h"

namespace assay::compare {
namespace {

NumberMap IndexByNumber(const std::vector<Declaration>& declarations) {
  NumberMap index;
  for (size_t i = 0; i < declarations.size(); ++i) index.Set(declarations[i].number, i);
  return index;
}

class VoteCounter final : public DiffSink {
 public:
  VoteCounter(const Declarations& a, const Declarations& b)
      : index_a_(IndexByNumber(a.buffers)),
        index_b_(IndexByNumber(b.buffers)),
        candidates_(a.buffers.size()) {}

  void Equal(Lines a, Lines b) override {
    for (size_t i = 0; i < a.size(); ++i) Count(a[i], b[i]);
  }
  void EqualBytes(std::string_view lines) override {
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      Count(line, line);
      lines.remove_prefix(line.size() + 1);
    }
  }
  void Unlike(Lines, Lines) override {}

  // The strongest votes first; each of B is given once.
  Partners Result() const {
    std::vector<size_t> order;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].lead > 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return candidates_[i].lead; });
    Partners partners(candidates_.size(), kNoPartner);
    std::unordered_map<size_t, bool> taken;
    for (const size_t i : order) {
      if (std::exchange(taken[candidates_[i].b], true)) continue;
      partners[i] = candidates_[i].b;
    }
    return partners;
  }

 private:
  struct Candidate {
    size_t b = kNoPartner;
    uint64_t lead = 0;
  };

  void Count(std::string_view line_a, std::string_view line_b) {
    // Declarations say nothing about who is who.
    if (IsBufferLine(line_a)) return;
    LineNames names_a(line_a), names_b(line_b);
    LineName a, b;
    while (names_a.Next(&a) && names_b.Next(&b)) {
      if (!a.is_kernel && !b.is_kernel) Vote(index_a_.Find(a.number), index_b_.Find(b.number));
    }
  }

  void Vote(uint64_t a, uint64_t b) {
    if (a == NumberMap::kNone || b == NumberMap::kNone) return;
    Candidate& candidate = candidates_[a];
    if (candidate.lead == 0) candidate.b = b;
    if (candidate.b == b) {
      ++candidate.lead;
    } else {
      --candidate.lead;
    }
  }

  NumberMap index_a_, index_b_;
  std::vector<Candidate> candidates_;
};

}  // namespace

AlikeNames::AlikeNames(const Declarations& declarations_a, const Declarations& declarations_b,
                       const Pairing& pairing)
    : a(pairing.a()), b(pairing.b()) {
  std::unordered_map<Token, size_t> most;
  for (const Declarations* side : {&declarations_a, &declarations_b}) {
    std::unordered_map<Token, size_t> here;
    for (const Declaration& each : side->buffers) {
      size_t& count = most[each.content];
      count = std::max(count, ++here[each.content]);
    }
  }
  const auto merge = [&](const Declarations& declarations, SideNames* names) {
    for (const Declaration& each : declarations.buffers) {
      if (most[each.content] > 1) names->buffers.Set(each.number, each.content);
    }
  };
  merge(declarations_a, &a);
  merge(declarations_b, &b);
}

Result<Partners> VoteForPartners(const Input& input_a, const Input& input_b, const Declarations& a,
                                 const Declarations& b, const AlikeNames& alike,
                                 bool same_numbers) {
  ASSAY_ASSIGN_OR_RETURN(LineFeed feed_a, LineFeed::Open(input_a));
  ASSAY_ASSIGN_OR_RETURN(LineFeed feed_b, LineFeed::Open(input_b));
  LineWindow window_a(std::move(feed_a), alike.a), window_b(std::move(feed_b), alike.b);
  VoteCounter counter(a, b);
  ASSAY_TRY(StreamDifferences(&window_a, &window_b, same_numbers, &counter));
  return counter.Result();
}

Partners PartnersByNumber(const Declarations& a, const Declarations& b) {
  const NumberMap index_b = IndexByNumber(b.buffers);
  Partners partners;
  for (const Declaration& each : a.buffers) {
    const uint64_t index = index_b.Find(each.number);
    partners.push_back(index == NumberMap::kNone ? kNoPartner : static_cast<size_t>(index));
  }
  return partners;
}

}  // namespace assay::compare
