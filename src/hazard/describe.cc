#include "hazard/describe.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"

namespace assay::hazard {
namespace {

// "#1 "tmp"", "#1", or "all memory".
std::string BufferName(const Finding& finding) {
  if (!finding.buffer) return "all memory";
  std::string name = fmt::format("#{}", finding.buffer->value());
  if (!finding.label.empty()) name += fmt::format(" {}", Quoted(finding.label));
  return name;
}

std::string Bytes(const Finding& finding) {
  return fmt::format("bytes [{},{}) of {}", finding.range.begin, finding.range.end,
                     BufferName(finding));
}

std::string Capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string DescribePair(const Finding& finding, std::string_view second_does,
                         std::string_view first_does) {
  if (!finding.buffer) {
    return fmt::format(
        "{} may touch what {} touches, since one of them declares no accesses; no barrier stands "
        "between them.",
        Capitalised(Describe(finding.second)), Describe(finding.first));
  }
  return fmt::format("{} {} {}, which {} {}; no barrier stands between them.",
                     Capitalised(Describe(finding.second)), second_does, Bytes(finding),
                     Describe(finding.first), first_does);
}

std::string DescribeInFlight(const Finding& finding, std::string_view host_does,
                             std::string_view first_does) {
  return fmt::format("{} {}, which {} {}; the host has not waited for it.",
                     Capitalised(Describe(finding.second)), host_does, Describe(finding.first),
                     first_does);
}

std::string Binding(int32_t binding) {
  return binding == kNoBinding ? std::string() : fmt::format(" (binding {})", binding);
}

}  // namespace

std::string Describe(const Actor& actor) {
  if (actor.command_buffer == 0) return fmt::format("the host (line {})", actor.line);
  return fmt::format("dispatch {} of command buffer {} ({}, line {})", actor.dispatch,
                     actor.command_buffer, Printable(actor.kernel), actor.line);
}

std::string Describe(const Finding& finding) {
  switch (finding.rule) {
    case Rule::kReadAfterWrite:
      return DescribePair(finding, "reads", "writes");
    case Rule::kWriteAfterRead:
      return DescribePair(finding, "writes", "reads");
    case Rule::kWriteAfterWrite:
      return DescribePair(finding, "writes", "writes");
    case Rule::kHostRead:
      return DescribeInFlight(finding, "reads " + Bytes(finding), "writes");
    case Rule::kHostWrite:
      return DescribeInFlight(finding, "writes " + Bytes(finding), "uses");
    case Rule::kFreeInFlight:
      return DescribeInFlight(finding, "frees " + BufferName(finding), "uses");
    case Rule::kUseAfterFree:
      return fmt::format("{} uses {}{}, which was freed in line {}.",
                         Capitalised(Describe(finding.second)), Bytes(finding),
                         Binding(finding.second_binding), finding.first.line);
    case Rule::kDoubleFree:
      return fmt::format("{} frees {}, which was freed in line {}.",
                         Capitalised(Describe(finding.second)), BufferName(finding),
                         finding.first.line);
    case Rule::kOutOfBounds:
      return fmt::format("{} uses {}{}, which has {} bytes.", Capitalised(Describe(finding.second)),
                         Bytes(finding), Binding(finding.second_binding), finding.buffer_bytes);
    case Rule::kSelfOverlap:
      return fmt::format("{} has {} in bindings {} and {}, one of them writable.",
                         Capitalised(Describe(finding.second)), Bytes(finding),
                         finding.first_binding, finding.second_binding);
    case Rule::kNeverWritten:
      return fmt::format("{} reads {}, which nobody wrote.", Capitalised(Describe(finding.second)),
                         Bytes(finding));
    case Rule::kRedundantBarrier:
      break;
  }
  return {};
}

std::string Describe(const RedundantBarrier& barrier) {
  return fmt::format(
      "Barrier {} of command buffer {} (line {}), {}, orders nothing that the others do not.",
      barrier.barrier, barrier.command_buffer, barrier.line,
      barrier.after_dispatch == 0 ? std::string("ahead of every dispatch")
                                  : fmt::format("after dispatch {}", barrier.after_dispatch));
}

std::string DescribeClosed(const Suggestion& suggestion) {
  if (suggestion.closes_possible == 0) {
    return "closes " + Counted(suggestion.closes_certain, "pair");
  }
  if (suggestion.closes_certain == 0) {
    return "closes " + Counted(suggestion.closes_possible, "possible pair");
  }
  return fmt::format("closes {} and {}", Counted(suggestion.closes_certain, "pair"),
                     Counted(suggestion.closes_possible, "possible pair"));
}

}  // namespace assay::hazard
