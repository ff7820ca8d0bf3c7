// Graphs: a recorded run of dispatches, and plans that fuse and reorder it.
//
// A plan is made once from sample graphs of one program and serves every graph of that shape, such
// as each token's (docs/graph.md):
//
//   session->BeginCapture(std::move(graph)); EncodeToken(position); graph = session->EndCapture();
//   session->Replay(graph, plan);
#ifndef ASSAY_GPU_GRAPH_H_
#define ASSAY_GPU_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/base.h"
#include "assay/flow.h"
#include "assay/gpu.h"

namespace assay::gpu {

// A recorded run of dispatches and barriers that can be replayed. Holds its buffers alive.
class Graph {
 public:
  struct State;  // src/gpu/graph_state.h

  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  size_t dispatch_count() const;

 private:
  friend class GraphPlan;
  friend class Session;
  friend class SessionState;
  std::unique_ptr<State> state_;
};

// --- Fusion rules

// Binding `binding` of the part `part` of a rule.
struct PartBinding {
  uint8_t part = 0;
  uint8_t binding = 0;
  bool operator==(const PartBinding&) const = default;
};

// Both bind the same bytes. As a link, `from` is where they are last written before `to` reads
// them.
struct BindingPair {
  PartBinding from;
  PartBinding to;
};

struct FusedBinding {
  PartBinding place;
  Access access = Access::kRead;
};

// What the fused dispatch needs beside its bindings.
struct FusedLaunch {
  std::array<std::byte, 128> constants{};
  uint32_t constant_bytes = 0;
  Extent3 grid;
  uint32_t shared_bytes = 0;
};

// Several dispatches that one kernel can replace. The author vouches that the kernel gives the bits
// of its parts, run one after another; everything about other dispatches is the planner's business.
// All spans are constant tables.
struct FusionRule {
  std::string_view kernel;                  // Registered with the device.
  std::span<const std::string_view> parts;  // Kernel names, in recorded order.
  // A tree: following them backwards from the last part reaches every part once, the later
  // parts' links last.
  std::span<const BindingPair> links;
  std::span<const BindingPair> same;       // Further bindings that must be the same bytes.
  std::span<const FusedBinding> bindings;  // Those of the fused kernel, in its order.
  // False where the kernel does not take these sizes, or would not gain from them. Called at every
  // replay; depends on nothing but the parts' constants, grids, shared memory and binding sizes.
  bool (*launch)(std::span<const Dispatch> parts, FusedLaunch& launch) = nullptr;
};

// --- Plans

struct PlanOptions {
  std::span<const FusionRule> fusions = {};  // Must outlive the plan; the earlier one wins.
  bool reorder = true;
  // A dispatch is moved ahead of, and parts of a fusion lie apart by, fewer than this many others.
  uint32_t look_ahead = 64;
  // Bytes whose contents nobody needs when the graph has run: only of these, or of bytes that the
  // graph itself overwrites later, may a fusion leave a value unwritten. Bytes that the graph reads
  // before it writes them do not count.
  std::vector<BufferView> scratch = {};
};

// Why a match was left alone.
enum class Refusal : uint8_t {
  kReader,    // Another dispatch reads the value that would no longer be written.
  kOutlives,  // That value may be read when the graph has run, or runs again.
  kBetween,   // A dispatch between the parts touches the same bytes in conflict.
  kOverlap,   // The fused dispatch would bind bytes twice that no part binds twice, or would read a
              // value that one of its own parts writes.
  kSizes,     // The rule does not take these sizes.
};
std::string_view RefusalName(Refusal refusal);

struct RefusedFusion {
  std::string_view kernel;  // The fused one.
  Refusal refusal = Refusal::kSizes;
  uint32_t last = 0;   // The last part, counting recorded dispatches from 0.
  uint32_t other = 0;  // The dispatch in the way, for kReader and kBetween; else `last`.
};

struct PlanReport {
  uint32_t dispatches_recorded = 0;
  uint32_t barriers_recorded = 0;
  uint32_t barriers_least = 0;  // That the recorded order needs.
  uint32_t dispatches = 0;
  uint32_t barriers = 0;  // Never more than barriers_least.
  uint32_t fusions = 0;
  uint32_t moved = 0;  // Dispatches that come ahead of one recorded earlier.
  std::vector<RefusedFusion> refused;
};

// How to run the graphs of one shape: which dispatches are fused, in which order, and where the
// barriers go. One replay at a time. Holds the buffers of its samples alive.
//
// The plan is proved (flow::CheckOrder) for the widest ranges that the samples show at each
// binding. Replay takes a graph only if it has the same kernels and buffers, the same range
// wherever the samples agree, and elsewhere a range within what they span: fewer bytes have fewer
// conflicts, so the proof holds for it as well.
class GraphPlan {
 public:
  struct State;  // src/gpu/graph_plan_state.h

  // At least one sample; all of the same kernels and buffers, captured on `device`, or
  // kInvalidArgument. kInternal when the order that was found does not pass the check.
  static Result<GraphPlan> Create(Device& device, std::span<const Graph* const> samples,
                                  const PlanOptions& options = {});
  GraphPlan();
  ~GraphPlan();
  GraphPlan(GraphPlan&&) noexcept;
  GraphPlan& operator=(GraphPlan&&) noexcept;
  explicit operator bool() const { return state_ != nullptr; }

  const PlanReport& report() const;
  // What the check was given.
  const std::vector<flow::Recorded>& recorded() const;
  const std::vector<flow::Emitted>& emitted() const;
  const std::vector<flow::Dead>& dead() const;

 private:
  friend class SessionState;
  std::unique_ptr<State> state_;
};

}  // namespace assay::gpu

#endif  // ASSAY_GPU_GRAPH_H_
