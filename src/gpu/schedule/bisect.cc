#include "gpu/schedule/bisect.h"

#include <algorithm>
#include <utility>

namespace assay::gpu {
namespace {

// The least n in (low, high] for which holds(n) with holds(n - 1) false, given that holds(low) is
// false and holds(high) true. What lies between need not be in any order.
Result<size_t> FirstChange(size_t low, size_t high,
                           const std::function<Result<bool>(size_t)>& holds) {
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    ASSAY_ASSIGN_OR_RETURN(const bool yes, holds(middle));
    (yes ? high : low) = middle;
  }
  return high;
}

// The exchanges of neighbours that lead from the recorded order to `target`: each is the place of
// the left one.
std::vector<uint32_t> PathTo(const std::vector<uint32_t>& target) {
  std::vector<uint32_t> path;
  std::vector<uint32_t> order = RecordedArrangement(target.size()).order;
  for (uint32_t at = 0; at < target.size(); ++at) {
    auto found = static_cast<uint32_t>(std::find(order.begin() + at, order.end(), target[at]) -
                                       order.begin());
    for (; found > at; --found) {
      std::swap(order[found - 1], order[found]);
      path.push_back(found - 1);
    }
  }
  return path;
}

std::vector<uint32_t> Walk(size_t count, const std::vector<uint32_t>& path, size_t steps) {
  std::vector<uint32_t> order = RecordedArrangement(count).order;
  for (size_t i = 0; i < steps; ++i) std::swap(order[path[i]], order[path[i] + 1]);
  return order;
}

class Search {
 public:
  Search(const std::vector<ArrangedGroup>& groups, const DiffersWhen& differs)
      : groups_(groups), differs_(differs) {}

  Result<std::optional<Culprit>> Run() {
    ASSAY_ASSIGN_OR_RETURN(const bool all, Ask(groups_));
    if (!all) return std::optional<Culprit>();
    ASSAY_ASSIGN_OR_RETURN(const bool none, Ask({}));
    if (none) return std::optional<Culprit>();
    ASSAY_ASSIGN_OR_RETURN(const size_t count, FirstChange(0, groups_.size(), [this](size_t n) {
                             return Ask({groups_.begin(), groups_.begin() + ToOffset(n)});
                           }));
    const ArrangedGroup& group = groups_[count - 1];
    place_ = group.place;
    // Nearly always the group needs none of those ahead of it.
    ASSAY_ASSIGN_OR_RETURN(const bool by_itself, Ask({group}));
    if (!by_itself) context_.assign(groups_.begin(), groups_.begin() + ToOffset(count - 1));
    const bool mixed = group.arrangement.mixed_begin != group.arrangement.mixed_end;
    ASSAY_ASSIGN_OR_RETURN(Culprit culprit,
                           mixed ? Mixed(group.arrangement) : Exchanged(group.arrangement));
    culprit.alone = culprit.alone && by_itself;
    culprit.place = place_;
    culprit.mixed = mixed;
    culprit.runs = runs_;
    return std::optional<Culprit>(culprit);
  }

 private:
  static ptrdiff_t ToOffset(size_t n) { return static_cast<ptrdiff_t>(n); }

  Result<bool> Ask(const std::vector<ArrangedGroup>& groups) {
    ++runs_;
    return differs_(groups);
  }
  // With the group arranged so, behind what it needs.
  Result<bool> AskArranged(Arrangement arrangement) {
    std::vector<ArrangedGroup> groups = context_;
    groups.push_back({place_, std::move(arrangement)});
    return Ask(groups);
  }
  Result<bool> AskOrder(std::vector<uint32_t> order) {
    Arrangement arrangement;
    arrangement.order = std::move(order);
    return AskArranged(std::move(arrangement));
  }

  Result<Culprit> Exchanged(const Arrangement& arrangement) {
    const size_t count = arrangement.order.size();
    const std::vector<uint32_t> path = PathTo(arrangement.order);
    ASSAY_ASSIGN_OR_RETURN(const size_t steps, FirstChange(0, path.size(), [&](size_t n) {
                             return AskOrder(Walk(count, path, n));
                           }));
    const std::vector<uint32_t> before = Walk(count, path, steps - 1);
    Culprit culprit;
    culprit.first = before[path[steps - 1]];
    culprit.second = before[path[steps - 1] + 1];
    // Ahead of the first one, and then behind the second one.
    const auto move = [&](uint32_t from, uint32_t to) {
      std::vector<uint32_t> order = RecordedArrangement(count).order;
      order.erase(order.begin() + from);
      order.insert(order.begin() + to, from);
      return AskOrder(std::move(order));
    };
    ASSAY_ASSIGN_OR_RETURN(culprit.alone, move(culprit.second, culprit.first));
    if (culprit.alone || culprit.second - culprit.first == 1) return culprit;
    ASSAY_ASSIGN_OR_RETURN(culprit.alone, move(culprit.first, culprit.second));
    return culprit;
  }

  Result<Culprit> Mixed(const Arrangement& arrangement) {
    const auto ask = [&](size_t begin, size_t end) {
      Arrangement part = arrangement;
      part.mixed_begin = static_cast<uint32_t>(begin);
      part.mixed_end = static_cast<uint32_t>(end);
      return AskArranged(std::move(part));
    };
    // The stretch that is mixed, cut at its end and then at its beginning.
    const size_t begin = arrangement.mixed_begin;
    ASSAY_ASSIGN_OR_RETURN(const size_t end, FirstChange(begin, arrangement.mixed_end,
                                                         [&](size_t n) { return ask(begin, n); }));
    ASSAY_ASSIGN_OR_RETURN(
        const size_t cut, FirstChange(0, end - begin, [&](size_t n) { return ask(end - n, end); }));
    Culprit culprit;
    culprit.first = arrangement.order[end - cut];
    culprit.second = arrangement.order[end - 1];
    culprit.alone = cut <= 2;
    return culprit;
  }

  const std::vector<ArrangedGroup>& groups_;
  const DiffersWhen& differs_;
  GroupPlace place_;
  std::vector<ArrangedGroup> context_;
  uint64_t runs_ = 0;
};

}  // namespace

Result<std::optional<Culprit>> FindCulprit(const std::vector<ArrangedGroup>& groups,
                                           const DiffersWhen& differs) {
  return Search(groups, differs).Run();
}

}  // namespace assay::gpu
