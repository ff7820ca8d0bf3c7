#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "assay/flow.h"

namespace assay::flow {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

// What one dispatch does to one stretch of bytes whose every byte is touched by the same ones.
struct Use {
  uint32_t dispatch = 0;  // In its stream.
  bool reads = false;
  bool writes = false;
  bool overwrites = false;  // Every byte, for certain.
  bool needs_old() const { return reads || (writes && !overwrites); }
};

bool Conflict(const Use& a, const Use& b) { return a.writes || b.writes; }

void Merge(std::vector<Use>& uses, uint32_t dispatch, const Touch& touch) {
  if (uses.empty() || uses.back().dispatch != dispatch) uses.push_back({dispatch});
  Use& use = uses.back();
  use.reads |= Reads(touch.access);
  use.writes |= Writes(touch.access);
  use.overwrites |= Writes(touch.access) && touch.exact;
}

class OrderCheck {
 public:
  OrderCheck(std::span<const Recorded> recorded, std::span<const Emitted> emitted,
             std::span<const Dead> dead)
      : recorded_(recorded), emitted_(emitted), dead_(dead) {}

  std::vector<Finding> Run() {
    if (!PlaceSteps()) return std::move(findings_);
    CheckFences();
    CollectCuts();
    for (const auto& [allocation, cuts] : cuts_) CheckAllocation(allocation, cuts);
    return std::move(findings_);
  }

 private:
  void Report(Fault fault, uint32_t first, uint32_t second, uint64_t allocation = 0,
              ByteRange range = {}) {
    if (reported_.insert({static_cast<uint64_t>(fault), first, second}).second) {
      findings_.push_back({fault, first, second, allocation, range});
    }
  }

  // Where each recorded dispatch went. False when the two streams do not hold the same dispatches.
  bool PlaceSteps() {
    step_of_.assign(recorded_.size(), kNowhere);
    group_of_.resize(emitted_.size());
    uint32_t group = 0;
    for (uint32_t step = 0; step < emitted_.size(); ++step) {
      group_of_[step] = group;
      if (emitted_[step].barrier) {
        ++group;
        continue;
      }
      if (emitted_[step].parts.empty()) Report(Fault::kUnknown, step, step);
      for (const uint32_t part : emitted_[step].parts) {
        if (part >= recorded_.size()) {
          Report(Fault::kUnknown, step, step);
        } else if (step_of_[part] != kNowhere) {
          Report(Fault::kRepeated, part, part);
        } else {
          step_of_[part] = step;
        }
      }
    }
    for (uint32_t i = 0; i < recorded_.size(); ++i) {
      if (step_of_[i] == kNowhere) Report(Fault::kMissing, i, i);
    }
    return findings_.empty();
  }

  void CheckPair(uint32_t first, uint32_t second, uint64_t allocation, ByteRange range) {
    const uint32_t a = step_of_[first];
    const uint32_t b = step_of_[second];
    if (a == b) return;
    if (a > b) {
      Report(Fault::kReversed, first, second, allocation, range);
    } else if (group_of_[a] == group_of_[b]) {
      Report(Fault::kUnordered, first, second, allocation, range);
    }
  }

  void CheckFences() {
    for (uint32_t fence = 0; fence < recorded_.size(); ++fence) {
      const Emitted& step = emitted_[step_of_[fence]];
      // A step that touches everything where its part does not is a fence nobody asked for.
      if (recorded_[fence].empty() != step.touches.empty()) {
        Report(Fault::kStrayWrite, fence, fence);
      }
      if (!recorded_[fence].empty()) continue;
      if (step.parts.size() > 1) Report(Fault::kFusedFence, fence, fence);
      for (uint32_t other = 0; other < recorded_.size(); ++other) {
        CheckPair(std::min(fence, other), std::max(fence, other), 0, {});
      }
    }
  }

  void CollectCuts() {
    const auto cut = [&](const Touch& touch) {
      if (touch.range.empty()) return;
      cuts_[touch.allocation].push_back(touch.range.begin);
      cuts_[touch.allocation].push_back(touch.range.end);
    };
    for (const Recorded& one : recorded_) std::ranges::for_each(one, cut);
    for (const Emitted& step : emitted_) std::ranges::for_each(step.touches, cut);
    for (const Dead& dead : dead_) {
      const auto found = cuts_.find(dead.allocation);
      if (dead.range.empty() || found == cuts_.end()) continue;
      found->second.push_back(dead.range.begin);
      found->second.push_back(dead.range.end);
    }
    for (auto& [allocation, cuts] : cuts_) {
      std::ranges::sort(cuts);
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    }
  }

  void CheckAllocation(uint64_t allocation, const std::vector<uint64_t>& cuts) {
    // For each stretch, who touches it: the dispatches of either stream come in their order.
    std::vector<std::vector<Use>> before(cuts.size());
    std::vector<std::vector<Use>> after(cuts.size());
    const auto spread = [&](std::vector<std::vector<Use>>& uses, uint32_t dispatch,
                            const Touch& touch) {
      if (touch.allocation != allocation || touch.range.empty()) return;
      const auto begin = std::ranges::lower_bound(cuts, touch.range.begin) - cuts.begin();
      for (size_t i = static_cast<size_t>(begin); cuts[i] < touch.range.end; ++i) {
        Merge(uses[i], dispatch, touch);
      }
    };
    for (uint32_t i = 0; i < recorded_.size(); ++i) {
      for (const Touch& touch : recorded_[i]) spread(before, i, touch);
    }
    for (uint32_t i = 0; i < emitted_.size(); ++i) {
      for (const Touch& touch : emitted_[i].touches) spread(after, i, touch);
    }
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      CheckStretch(allocation, {cuts[i], cuts[i + 1]}, before[i], after[i]);
    }
  }

  void CheckStretch(uint64_t allocation, ByteRange range, const std::vector<Use>& before,
                    const std::vector<Use>& after) {
    std::map<uint32_t, const Use*> by_step;
    for (const Use& use : after) by_step[use.dispatch] = &use;
    for (size_t second = 1; second < before.size(); ++second) {
      for (size_t first = 0; first < second; ++first) {
        if (!Conflict(before[first], before[second])) continue;
        // A step that has given the bytes up needs no order on them.
        if (!by_step.contains(step_of_[before[first].dispatch])) continue;
        if (!by_step.contains(step_of_[before[second].dispatch])) continue;
        CheckPair(before[first].dispatch, before[second].dispatch, allocation, range);
      }
    }
    std::set<uint32_t> steps;
    for (const Use& use : before) steps.insert(step_of_[use.dispatch]);
    for (const uint32_t step : steps) {
      const auto found = by_step.find(step);
      CheckStep(allocation, range, before, step, found == by_step.end() ? Use{} : *found->second);
    }
    for (const auto& [step, use] : by_step) {
      if (steps.contains(step)) continue;
      const uint32_t part = emitted_[step].parts.front();
      Report(use->writes ? Fault::kStrayWrite : Fault::kStrayRead, part, part, allocation, range);
    }
  }

  // What one step does to the stretch, against what its parts did.
  void CheckStep(uint64_t allocation, ByteRange range, const std::vector<Use>& before,
                 uint32_t step, const Use& now) {
    const Use* first = nullptr;
    size_t last_writer = before.size();
    bool overwrites = false;
    for (size_t i = 0; i < before.size(); ++i) {
      if (step_of_[before[i].dispatch] != step) continue;
      if (first == nullptr) first = &before[i];
      if (before[i].writes) last_writer = i;
      overwrites |= before[i].overwrites;
    }
    if (now.reads && !first->needs_old()) {
      Report(Fault::kStrayRead, first->dispatch, first->dispatch, allocation, range);
    }
    if (last_writer == before.size()) {
      if (now.writes) {
        Report(Fault::kStrayWrite, first->dispatch, first->dispatch, allocation, range);
      }
      return;
    }
    const bool kept = overwrites ? now.overwrites : now.writes;
    if (kept) return;
    const uint32_t writer = before[last_writer].dispatch;
    for (size_t i = last_writer + 1; i < before.size(); ++i) {
      if (step_of_[before[i].dispatch] == step) continue;
      if (before[i].needs_old()) {
        Report(Fault::kLostRead, writer, before[i].dispatch, allocation, range);
        return;
      }
      if (before[i].overwrites) return;
    }
    const bool dead = std::ranges::any_of(dead_, [&](const Dead& one) {
      return one.allocation == allocation && one.range.Contains(range);
    });
    // What is read before it is written comes from the run before.
    if (!dead || before.front().needs_old()) {
      Report(Fault::kLostResult, writer, writer, allocation, range);
    }
  }

  std::span<const Recorded> recorded_;
  std::span<const Emitted> emitted_;
  std::span<const Dead> dead_;
  std::vector<uint32_t> step_of_;   // By recorded dispatch.
  std::vector<uint32_t> group_of_;  // By emitted step: barriers ahead of it.
  std::map<uint64_t, std::vector<uint64_t>> cuts_;
  std::set<std::array<uint64_t, 3>> reported_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view FaultName(Fault fault) {
  switch (fault) {
    case Fault::kMissing:
      return "missing";
    case Fault::kRepeated:
      return "repeated";
    case Fault::kUnknown:
      return "unknown";
    case Fault::kReversed:
      return "reversed";
    case Fault::kUnordered:
      return "unordered";
    case Fault::kFusedFence:
      return "fused-fence";
    case Fault::kStrayRead:
      return "stray-read";
    case Fault::kStrayWrite:
      return "stray-write";
    case Fault::kLostRead:
      return "lost-read";
    case Fault::kLostResult:
      return "lost-result";
  }
  return "";
}

std::string Describe(const Finding& finding) {
  std::string text(FaultName(finding.fault));
  if (finding.fault == Fault::kUnknown) {
    return text + fmt::format(": emitted step {}", finding.first);
  }
  text += finding.first == finding.second
              ? fmt::format(": recorded dispatch {}", finding.first)
              : fmt::format(": recorded dispatches {} and {}", finding.first, finding.second);
  if (!finding.range.empty()) {
    text += fmt::format(" on bytes [{}, {}) of allocation {}", finding.range.begin,
                        finding.range.end, finding.allocation);
  }
  return text;
}

std::vector<Finding> CheckOrder(std::span<const Recorded> recorded,
                                std::span<const Emitted> emitted, std::span<const Dead> dead) {
  return OrderCheck(recorded, emitted, dead).Run();
}

}  // namespace assay::flow
