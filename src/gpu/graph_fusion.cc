#include "gpu/graph_fusion.h"

#include <algorithm>
#include <optional>

namespace assay::gpu {
namespace {

bool Overlap(const PlannedTouch& a, const PlannedTouch& b) {
  return a.allocation == b.allocation && a.range.Overlaps(b.range);
}
bool SameBytes(const PlannedTouch& a, const PlannedTouch& b) {
  return a.allocation == b.allocation && a.range == b.range && a.fixed && b.fixed;
}
// Leaves nothing of what the range held before.
bool Overwrites(const PlannedTouch& touch) {
  return Writes(touch.access) && touch.exact && touch.fixed;
}

// Bytes of allocations, in no order.
class Bytes {
 public:
  explicit Bytes(std::vector<PlannedTouch> ranges) : ranges_(std::move(ranges)) {}
  bool empty() const { return ranges_.empty(); }
  bool Meets(const PlannedTouch& touch) const {
    return std::ranges::any_of(ranges_, [&](const auto& range) { return Overlap(range, touch); });
  }
  void Remove(const PlannedTouch& touch) {
    std::vector<PlannedTouch> left;
    for (const PlannedTouch& range : ranges_) {
      if (!Overlap(range, touch)) {
        left.push_back(range);
        continue;
      }
      PlannedTouch piece = range;
      piece.range = {range.range.begin, touch.range.begin};
      if (!piece.range.empty()) left.push_back(piece);
      piece.range = {touch.range.end, range.range.end};
      if (!piece.range.empty()) left.push_back(piece);
    }
    ranges_ = std::move(left);
  }

 private:
  std::vector<PlannedTouch> ranges_;
};

constexpr uint32_t kNone = UINT32_MAX;

class Fuser {
 public:
  Fuser(const PlannerInput& input, std::vector<RefusedFusion>& refused)
      : input_(input), refused_(refused), taken_(input.dispatches.size(), false) {}

  std::vector<PlannedUnit> Run() {
    std::vector<std::pair<uint32_t, PlannedUnit>> fused;  // By the last part.
    for (uint32_t last = 0; last < input_.dispatches.size(); ++last) {
      for (const FusionRule& rule : input_.options->fusions) {
        std::optional<PlannedUnit> unit = Match(rule, last);
        if (!unit || !Legal(*unit, last)) continue;
        for (const uint32_t part : unit->parts) taken_[part] = true;
        fused.emplace_back(last, *std::move(unit));
        break;
      }
    }
    std::vector<PlannedUnit> units;
    auto next = fused.begin();
    for (uint32_t i = 0; i < input_.dispatches.size(); ++i) {
      if (next != fused.end() && next->first == i) {
        units.push_back(std::move((next++)->second));
      } else if (!taken_[i]) {
        units.push_back({{i}, nullptr, false});
      }
    }
    return units;
  }

 private:
  const PlannedDispatch& At(uint32_t i) const { return input_.dispatches[i]; }
  const PlannedTouch& TouchAt(const PlannedUnit& unit, PartBinding place) const {
    return At(unit.parts[place.part]).touches[place.binding];
  }
  bool Has(uint32_t dispatch, PartBinding place) const {
    return place.binding < At(dispatch).touches.size();
  }

  // The dispatch that last wrote exactly what `read` reads, ahead of `reader`.
  uint32_t LastWriter(const PlannedTouch& read, uint32_t reader, uint32_t first,
                      uint8_t binding) const {
    for (uint32_t i = reader; i-- > first;) {
      if (At(i).touches.empty()) return kNone;
      bool writes = false;
      for (const PlannedTouch& touch : At(i).touches) {
        writes |= Writes(touch.access) && Overlap(touch, read);
      }
      if (!writes) continue;
      if (binding >= At(i).touches.size()) return kNone;
      const PlannedTouch& touch = At(i).touches[binding];
      return Overwrites(touch) && SameBytes(touch, read) ? i : kNone;
    }
    return kNone;
  }

  std::optional<PlannedUnit> Match(const FusionRule& rule, uint32_t last) const {
    if (At(last).kernel != rule.parts.back() || taken_[last]) return std::nullopt;
    PlannedUnit unit{std::vector<uint32_t>(rule.parts.size(), kNone), &rule, false};
    unit.parts.back() = last;
    const uint32_t reach = input_.options->look_ahead;
    const uint32_t first = last < reach ? 0 : last - reach + 1;
    for (size_t l = rule.links.size(); l-- > 0;) {
      const BindingPair& link = rule.links[l];
      const uint32_t reader = unit.parts[link.to.part];
      if (reader == kNone || !Has(reader, link.to)) return std::nullopt;
      const uint32_t writer =
          LastWriter(At(reader).touches[link.to.binding], reader, first, link.from.binding);
      if (writer == kNone || taken_[writer] || At(writer).kernel != rule.parts[link.from.part]) {
        return std::nullopt;
      }
      uint32_t& part = unit.parts[link.from.part];
      if (part != kNone && part != writer) return std::nullopt;
      part = writer;
    }
    for (size_t p = 0; p < unit.parts.size(); ++p) {
      if (unit.parts[p] == kNone || (p > 0 && unit.parts[p - 1] >= unit.parts[p])) {
        return std::nullopt;
      }
    }
    for (const BindingPair& same : rule.same) {
      if (!SameBytes(TouchAt(unit, same.from), TouchAt(unit, same.to))) return std::nullopt;
    }
    return unit;
  }

  bool Refuse(const PlannedUnit& unit, Refusal refusal, uint32_t other) {
    refused_.push_back({unit.rule->kernel, refusal, unit.parts.back(), other});
    return false;
  }

  bool Legal(const PlannedUnit& unit, uint32_t last) {
    for (const uint32_t part : unit.parts) {
      for (uint32_t between = part + 1; between < last; ++between) {
        if (std::ranges::find(unit.parts, between) != unit.parts.end()) continue;
        if (TouchesConflict(At(part).touches, At(between).touches)) {
          return Refuse(unit, Refusal::kBetween, between);
        }
      }
    }
    if (BindsTwice(unit) || ReadsItsOwnValue(unit)) return Refuse(unit, Refusal::kOverlap, last);
    std::vector<Dispatch> parts;
    for (const uint32_t part : unit.parts) parts.push_back(At(part).sample);
    FusedLaunch launch;
    if (!unit.rule->launch(parts, launch)) return Refuse(unit, Refusal::kSizes, last);
    for (size_t p = 0; p < unit.parts.size(); ++p) {
      if (!LosesNothing(unit, p)) return false;
    }
    return true;
  }

  // The author of a kernel knows whether one of its parts may bind bytes twice, and of nothing
  // else.
  bool BindsTwice(const PlannedUnit& unit) const {
    const auto bindings = unit.rule->bindings;
    for (size_t b = 1; b < bindings.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const PlannedTouch& first = TouchAt(unit, bindings[a].place);
        const PlannedTouch& second = TouchAt(unit, bindings[b].place);
        if (!Conflicts(bindings[a].access, bindings[b].access) || !Overlap(first, second)) continue;
        if (bindings[a].place.part != bindings[b].place.part || !SameBytes(first, second)) {
          return true;
        }
      }
    }
    return false;
  }

  // The fused dispatch reads before any of its parts has written.
  bool ReadsItsOwnValue(const PlannedUnit& unit) const {
    for (const FusedBinding& fused : unit.rule->bindings) {
      if (!Reads(fused.access)) continue;
      for (size_t p = 0; p < fused.place.part; ++p) {
        for (const PlannedTouch& touch : At(unit.parts[p]).touches) {
          if (Writes(touch.access) && Overlap(touch, TouchAt(unit, fused.place))) return true;
        }
      }
    }
    return false;
  }

  // What part `p` writes and the fused dispatch does not.
  Bytes Unwritten(const PlannedUnit& unit, size_t p) const {
    std::vector<PlannedTouch> written;
    const auto& touches = At(unit.parts[p]).touches;
    for (size_t b = 0; b < touches.size(); ++b) {
      const bool kept = std::ranges::any_of(unit.rule->bindings, [&](const FusedBinding& fused) {
        return fused.place == PartBinding{static_cast<uint8_t>(p), static_cast<uint8_t>(b)} &&
               Writes(fused.access);
      });
      if (Writes(touches[b].access) && !kept) written.push_back(touches[b]);
    }
    Bytes unwritten(std::move(written));
    for (const FusedBinding& fused : unit.rule->bindings) {
      const PlannedTouch& touch = TouchAt(unit, fused.place);
      if (Writes(fused.access) && Overwrites(touch)) unwritten.Remove(touch);
    }
    return unwritten;
  }

  bool LosesNothing(const PlannedUnit& unit, size_t p) {
    Bytes lost = Unwritten(unit, p);
    for (uint32_t i = unit.parts[p] + 1; i < input_.dispatches.size() && !lost.empty(); ++i) {
      const bool own = std::ranges::find(unit.parts, i) != unit.parts.end();
      if (!own && Needs(At(i), lost)) return Refuse(unit, Refusal::kReader, i);
      if (!own) RemoveOverwritten(At(i), lost);
    }
    // What is left outlives the graph.
    Bytes needed = lost;
    for (const PlannedTouch& scratch : input_.scratch) needed.Remove(scratch);
    if (!needed.empty()) return Refuse(unit, Refusal::kOutlives, unit.parts.back());
    for (uint32_t i = 0; i < input_.dispatches.size() && !lost.empty(); ++i) {
      if (Needs(At(i), lost)) return Refuse(unit, Refusal::kOutlives, unit.parts.back());
      RemoveOverwritten(At(i), lost);
    }
    return true;
  }

  static bool Needs(const PlannedDispatch& dispatch, const Bytes& bytes) {
    if (dispatch.touches.empty()) return true;
    return std::ranges::any_of(dispatch.touches, [&](const PlannedTouch& touch) {
      return (Reads(touch.access) || !Overwrites(touch)) && bytes.Meets(touch);
    });
  }
  static void RemoveOverwritten(const PlannedDispatch& dispatch, Bytes& bytes) {
    for (const PlannedTouch& touch : dispatch.touches) {
      if (Overwrites(touch)) bytes.Remove(touch);
    }
  }

  const PlannerInput& input_;
  std::vector<RefusedFusion>& refused_;
  std::vector<bool> taken_;
};

}  // namespace

bool TouchesConflict(std::span<const PlannedTouch> a, std::span<const PlannedTouch> b) {
  if (a.empty() || b.empty()) return true;
  return std::ranges::any_of(a, [&](const PlannedTouch& first) {
    return std::ranges::any_of(b, [&](const PlannedTouch& second) {
      return Conflicts(first.access, second.access) && Overlap(first, second);
    });
  });
}

std::vector<PlannedUnit> FuseUnits(const PlannerInput& input, std::vector<RefusedFusion>& refused) {
  return Fuser(input, refused).Run();
}

}  // namespace assay::gpu
