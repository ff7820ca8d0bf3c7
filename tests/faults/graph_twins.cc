// Kinds 8 and 9: graphs that are fused and reordered.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/flow.h"
#include "assay/gpu.h"
#include "assay/gpu_graph.h"

#include "gpu/backend.h"
#include "tests/conformance/test_kernels.h"
#include "tests/faults/checking.h"
#include "tests/faults/corpus.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

using gpu::testing::Elementwise;
using gpu::testing::MakeBuffer;
using gpu::testing::View;

constexpr uint64_t kBytes = 256;

// What `judge` says of the plan for the dispatches that `encode` makes, captured with a barrier
// behind each. A failure is its text.
std::string PlanFor(const std::function<Status(gpu::Device& device, gpu::Session& session,
                                               gpu::PlanOptions& options)>& encode,
                    const std::function<std::string(const gpu::GraphPlan& plan)>& judge) {
  const auto plan = [&]() -> Result<std::string> {
    ASSAY_ASSIGN_OR_RETURN(auto backend, gpu::MakeBackend("null"));
    ASSAY_ASSIGN_OR_RETURN(const auto device, gpu::Device::Create(std::move(backend)));
    gpu::testing::RegisterTestKernels(*device);
    ASSAY_ASSIGN_OR_RETURN(const auto session,
                           device->CreateSession({.barriers = gpu::BarrierMode::kSerial}));
    ASSAY_TRY(session->BeginCapture());
    gpu::PlanOptions options;
    ASSAY_TRY(encode(*device, *session, options));
    ASSAY_ASSIGN_OR_RETURN(const gpu::Graph graph, session->EndCapture());
    const gpu::Graph* const sample = &graph;
    ASSAY_ASSIGN_OR_RETURN(const gpu::GraphPlan made,
                           gpu::GraphPlan::Create(*device, {&sample, 1}, options));
    return judge(made);
  }();
  return plan ? *plan : plan.error().ToString();
}

std::string Describe(const std::vector<flow::Finding>& findings) {
  std::vector<std::string> all;
  for (const flow::Finding& finding : findings) {
    all.push_back(fmt::format("{} {} {} [{},{})", flow::FaultName(finding.fault), finding.first,
                              finding.second, finding.range.begin, finding.range.end));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

// --- Kind 8: tmp = a + b, out = tmp * c, and perhaps a reader of tmp.

// The planner: with the reader it leaves the two as they are and says why.
std::string PlanFusion(bool second_reader) {
  const auto encode = [&](gpu::Device& device, gpu::Session& session,
                          gpu::PlanOptions& options) -> Status {
    const gpu::BufferView a = MakeBuffer(device, kBytes, "a").All();
    const gpu::BufferView tmp = MakeBuffer(device, kBytes, "tmp").All();
    const gpu::BufferView out = MakeBuffer(device, kBytes, "out").All();
    const gpu::BufferView other = MakeBuffer(device, kBytes, "other").All();
    options.fusions = gpu::testing::AddMulRule();
    options.scratch = {tmp};
    ASSAY_TRY(session.Dispatch(Elementwise(device, "add", a, a, tmp).get()));
    ASSAY_TRY(session.Dispatch(Elementwise(device, "mul", tmp, a, out).get()));
    return session.Dispatch(Elementwise(device, "mul", a, second_reader ? tmp : a, other).get());
  };
  return PlanFor(encode, [](const gpu::GraphPlan& plan) {
    const gpu::PlanReport& report = plan.report();
    std::string refused;
    for (const gpu::RefusedFusion& fusion : report.refused) {
      refused += fmt::format("{} of {} not made: {} {}", fusion.kernel, fusion.last,
                             gpu::RefusalName(fusion.refusal), fusion.other);
    }
    if (report.fusions + report.refused.size() != 1)
      return fmt::format("{} fusions", report.fusions);
    return refused;
  });
}

flow::Touch Reads(uint64_t allocation, ByteRange range = {0, kBytes}) {
  return {.allocation = allocation, .range = range, .access = Access::kRead};
}
flow::Touch Writes(uint64_t allocation, ByteRange range = {0, kBytes}) {
  return {.allocation = allocation, .range = range, .access = Access::kWrite};
}

// A fuser that does not look at other readers, before the check of legality.
std::string CheckFusion(bool second_reader) {
  enum : uint64_t { kA, kTmp, kOut, kOther };
  const std::vector<flow::Recorded> recorded = {{Reads(kA), Writes(kTmp)},
                                                {Reads(kTmp), Reads(kA), Writes(kOut)},
                                                {Reads(second_reader ? kTmp : kA), Writes(kOther)}};
  const std::vector<flow::Emitted> emitted = {
      {.parts = {0, 1}, .touches = {Reads(kA), Writes(kOut)}},
      {.barrier = true, .parts = {}, .touches = {}},
      {.parts = {2}, .touches = recorded[2]}};
  const std::vector<flow::Dead> dead = {{.allocation = kTmp, .range = {0, kBytes}}};
  return Describe(flow::CheckOrder(recorded, emitted, dead));
}

// The fused program's trace: nobody writes what the second reader reads.
std::string CheckFusedProgram(bool second_reader) {
  return CheckProgram([&](gpu::Device& device) -> Status {
    gpu::testing::RegisterTestKernels(device);
    ASSAY_ASSIGN_OR_RETURN(const auto session, device.CreateSession());
    const gpu::Buffer a = MakeBuffer(device, kBytes, "a");
    const gpu::Buffer tmp = MakeBuffer(device, kBytes, "tmp");
    const gpu::Buffer out = MakeBuffer(device, kBytes, "out");
    const gpu::Buffer other = MakeBuffer(device, kBytes, "other");
    ASSAY_TRY(device.Write(a.All(), std::vector<std::byte>(kBytes)));
    const gpu::testing::TestDispatch fused(gpu::testing::Kernel(device, "add_mul"),
                                           {{a.All(), Access::kRead},
                                            {a.All(), Access::kRead},
                                            {a.All(), Access::kRead},
                                            {out.All(), Access::kWrite}},
                                           1);
    ASSAY_TRY(session->Dispatch(fused.get()));
    const gpu::BufferView read = second_reader ? tmp.All() : a.All();
    ASSAY_TRY(session->Dispatch(Elementwise(device, "mul", read, a.All(), other.All()).get()));
    ASSAY_TRY(session->Commit());
    return session->Wait();
  });
}

// --- Kind 9

// Moves each dispatch ahead of those before it as long as `may_pass` lets it, and puts a barrier
// behind every one.
std::vector<flow::Emitted> Reorder(
    const std::vector<flow::Recorded>& recorded,
    const std::function<bool(const flow::Recorded& later, const flow::Recorded& earlier)>&
        may_pass) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < recorded.size(); ++i) {
    auto place = order.end();
    while (place != order.begin() && may_pass(recorded[i], recorded[*(place - 1)])) --place;
    order.insert(place, i);
  }
  std::vector<flow::Emitted> emitted;
  for (const uint32_t i : order) {
    emitted.push_back({.parts = {i}, .touches = recorded[i]});
    emitted.push_back({.barrier = true, .parts = {}, .touches = {}});
  }
  return emitted;
}

bool MayPass(const flow::Recorded& later, const flow::Recorded& earlier, bool by_bases) {
  return std::ranges::none_of(later, [&](const flow::Touch& a) {
    return std::ranges::any_of(earlier, [&](const flow::Touch& b) {
      const bool meet = by_bases ? a.range.begin == b.range.begin : a.range.Overlaps(b.range);
      return a.allocation == b.allocation && meet && Conflicts(a.access, b.access);
    });
  });
}

// A write of bytes [0, 256) and a read of bytes [192, 256) of the same buffer; the second dispatch
// has no other reason to stay behind the first.
const std::vector<flow::Recorded>& WriteThenReadOfATail() {
  static const std::vector<flow::Recorded> recorded = {{Reads(0), Writes(1)},
                                                       {Reads(1, {192, 256}), Writes(2, {0, 64})}};
  return recorded;
}

std::string CheckReorder(bool by_bases) {
  const auto& recorded = WriteThenReadOfATail();
  const auto emitted = Reorder(recorded, [&](const auto& later, const auto& earlier) {
    return MayPass(later, earlier, by_bases);
  });
  return Describe(flow::CheckOrder(recorded, emitted));
}

// The planner on the same two dispatches and two that may change places, against the faulty pass
// on what it was given.
std::string CheckPlan(bool by_bases) {
  const auto encode = [](gpu::Device& device, gpu::Session& session, gpu::PlanOptions&) -> Status {
    const gpu::Buffer a = MakeBuffer(device, kBytes, "a");
    const gpu::Buffer x = MakeBuffer(device, kBytes, "x");
    const gpu::Buffer y = MakeBuffer(device, kBytes, "y");
    const gpu::Buffer z = MakeBuffer(device, kBytes, "z");
    const gpu::BufferView tail = View(x, 192, 64);
    ASSAY_TRY(session.Dispatch(Elementwise(device, "add", a.All(), a.All(), x.All()).get()));
    ASSAY_TRY(session.Dispatch(Elementwise(device, "mul", tail, tail, View(y, 0, 64)).get()));
    // Free to come first.
    return session.Dispatch(Elementwise(device, "mul", a.All(), a.All(), z.All()).get());
  };
  return PlanFor(encode, [&](const gpu::GraphPlan& plan) {
    if (plan.report().moved != 1) return fmt::format("{} dispatches moved", plan.report().moved);
    const auto passed = Reorder(plan.recorded(), [](const auto& later, const auto& earlier) {
      return MayPass(later, earlier, true);
    });
    return Describe(
        flow::CheckOrder(plan.recorded(), by_bases ? passed : plan.emitted(), plan.dead()));
  });
}

}  // namespace

std::vector<Twin> GraphTwins() {
  using enum Catcher;
  return {
      MakeTwin(8, kGraph, "the planner and a second reader", PlanFusion,
               "add_mul of 1 not made: reader 2"),
      MakeTwin(8, kGraph, "a fusion made in spite of a second reader", CheckFusion,
               "lost-read 0 2 [0,256)"),
      MakeTwin(8, kHazardCheck, "the trace of that fusion", CheckFusedProgram,
               "note never-written 1:2 mul tmp[0,256)"),
      MakeTwin(9, kGraph, "a pass that compares bases", CheckReorder, "reversed 0 1 [192,256)"),
      MakeTwin(9, kGraph, "the planner, and that pass, on a captured graph", CheckPlan,
               "reversed 0 1 [192,256)"),
  };
}

}  // namespace assay::faults
