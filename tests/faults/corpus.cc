#include "tests/faults/corpus.h"

#include <utility>

namespace assay::faults {

std::string_view CatcherName(Catcher catcher) {
  switch (catcher) {
    case Catcher::kHazardCheck:
      return "hazard check";
    case Catcher::kSchedule:
      return "schedule";
    case Catcher::kMutation:
      return "mutation";
    case Catcher::kRuntime:
      return "runtime";
    case Catcher::kCheckedMode:
      return "checked mode";
    case Catcher::kGraph:
      return "graph rules";
    case Catcher::kBits:
      return "equal bits";
    case Catcher::kTrace:
      return "trace names";
    case Catcher::kTraceReader:
      return "trace reader";
    case Catcher::kFileReader:
      return "file reader";
  }
  return "";
}

std::vector<Kind> AllKinds() {
  using enum Catcher;
  return {
      {1, "merged command buffers", {kHazardCheck, kSchedule, kMutation}},
      {2, "an edge across functions", {kHazardCheck, kSchedule, kMutation}},
      {3, "write after read", {kHazardCheck, kSchedule, kMutation}},
      {4, "write after write", {kHazardCheck, kSchedule, kMutation}},
      {5, "a producer out of sight", {kHazardCheck, kSchedule, kMutation}},
      {6, "several edges at once", {kHazardCheck, kSchedule, kMutation}},
      {7, "a full barrier list", {kHazardCheck, kSchedule, kMutation}},
      {8, "a fusion with a second reader", {kHazardCheck, kGraph}},
      {9, "a reorder by bases", {kGraph}},
      {10, "won by timing", {kHazardCheck, kSchedule, kMutation}},
      {11, "input overwritten", {kHazardCheck, kRuntime}},
      {12, "result read early", {kHazardCheck, kRuntime}},
      {13, "last owner gone", {kHazardCheck, kRuntime}},
      {14, "handed out at last use", {kHazardCheck}},
      {15, "twice in the free list", {kHazardCheck, kRuntime, kCheckedMode}},
      {16, "memory not cleared", {kHazardCheck, kBits}},
      {17, "a bounded queue", {kRuntime}},
      {18, "offset ignored", {kCheckedMode, kBits}},
      {19, "offset or length lost", {kHazardCheck}},
      {20, "extent too small", {kCheckedMode}},
      {21, "one scratch for all slots", {kHazardCheck, kBits}},
      {22, "overlapping bindings", {kHazardCheck}},
      {23, "a wide binding", {kHazardCheck}},
      {24, "one row for many", {kCheckedMode, kBits}},
      {25, "another kernel for more rows", {kBits}},
      {26, "a tile skipped", {kBits}},
      {27, "a sum by threads", {kBits}},
      {28, "chunks and warm prefixes", {kBits}},
      {29, "names by creation", {kTrace}},
      {30, "pipelines by creation", {kTrace}},
      {31, "half a tensor", {kHazardCheck, kRuntime}},
      {32, "two recorders in a file", {kTraceReader}},
      {33, "a load that fails", {kTrace}},
      {34, "hostile files", {kFileReader}},
  };
}

std::vector<Twin> AllTwins() {
  std::vector<Twin> all;
  for (auto* part : {&OrderingTwins, &GraphTwins, &HostTwins, &ViewTwins, &BitsTwins, &LoadingTwins,
                     &FileTwins}) {
    for (Twin& twin : (*part)()) all.push_back(std::move(twin));
  }
  return all;
}

}  // namespace assay::faults
