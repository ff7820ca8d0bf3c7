#include "hazard/rules.h"

namespace assay::hazard {

const std::array<RuleRow, kRuleCount>& Rules() {
  static constexpr std::array<RuleRow, kRuleCount> kRows = {{
      {Rule::kReadAfterWrite, "raw", Category::kRaw,
       "A dispatch reads bytes that an earlier dispatch writes, and no barrier stands between "
       "them.",
       "Put a barrier between the two dispatches."},
      {Rule::kWriteAfterRead, "war", Category::kWar,
       "A dispatch writes bytes that an earlier dispatch reads, and no barrier stands between "
       "them.",
       "Put a barrier between the two dispatches, or write to other bytes."},
      {Rule::kWriteAfterWrite, "waw", Category::kWaw,
       "Two dispatches write the same bytes, and no barrier stands between them.",
       "Put a barrier between the two dispatches, or write to other bytes."},
      {Rule::kHostRead, "host-read", Category::kHost,
       "The host reads bytes that a command buffer in flight writes.",
       "Wait before the host reads."},
      {Rule::kHostWrite, "host-write", Category::kHost,
       "The host writes bytes that a command buffer in flight reads or writes.",
       "Wait before the host writes, or write to another buffer."},
      {Rule::kFreeInFlight, "free-in-flight", Category::kLifetime,
       "A buffer ends while a command buffer in flight uses it.",
       "Keep the buffer until the host has waited."},
      {Rule::kUseAfterFree, "use-after-free", Category::kLifetime,
       "A buffer is used after its end.", "Keep the buffer until its last use."},
      {Rule::kDoubleFree, "double-free", Category::kLifetime, "A buffer is freed a second time.",
       "Free the buffer once."},
      {Rule::kOutOfBounds, "bounds", Category::kBounds,
       "A binding or a host access reaches beyond its buffer.",
       "Check the offset and the length of the view, and the buffer's size."},
      {Rule::kSelfOverlap, "self", Category::kSelf,
       "Two bindings of one dispatch share bytes, one of them is writable, and they are not the "
       "same range.",
       "Bind the same range twice, or ranges that do not overlap."},
      {Rule::kNeverWritten, "never-written", Category::kNote, "Bytes are read that nobody wrote.",
       "Write them first, unless the zeros of a fresh buffer are meant."},
      {Rule::kRedundantBarrier, "redundant-barrier", Category::kNote,
       "A barrier orders no two dispatches that need it.",
       "Remove the barrier; when several are redundant, remove one at a time."},
  }};
  return kRows;
}

const RuleRow& RowOf(Rule rule) { return Rules()[static_cast<size_t>(rule)]; }

std::string_view RuleName(Rule rule) { return RowOf(rule).name; }

Category CategoryOf(Rule rule) { return RowOf(rule).category; }

std::string_view CategoryName(Category category) {
  switch (category) {
    case Category::kRaw:
      return "raw";
    case Category::kWar:
      return "war";
    case Category::kWaw:
      return "waw";
    case Category::kHost:
      return "host";
    case Category::kLifetime:
      return "lifetime";
    case Category::kBounds:
      return "bounds";
    case Category::kSelf:
      return "self";
    case Category::kNote:
      return "note";
  }
  return "note";
}

std::string_view BlindSpots() {
  return "not seen by any check of a trace: races inside one kernel, accesses that a dispatch does "
         "not declare, faults of the driver";
}

}  // namespace assay::hazard
