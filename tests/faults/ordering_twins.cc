// Kinds 1 to 10: missing order inside a command buffer.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "assay/gpu.h"

#include "gpu/backend.h"
#include "support/forwarding_backend.h"
#include "tests/faults/checking.h"
#include "tests/faults/corpus.h"
#include "tests/faults/ordering_programs.h"
#include "tests/faults/scheduling.h"
#include "tests/faults/twins.h"

namespace assay::faults {
namespace {

// Begins each command buffer but the first with the last dispatch of the first: code that encodes
// past the session does that, and the session's tracker does not learn of it.
class SmuggledDispatch final : public testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  Status OnBegin(gpu::BackendCommandBuffer& inner) override {
    if (++begun_ == 1) return {};
    gpu::BackendDispatch again = dispatch_;
    again.bindings = bindings_;
    again.constants = constants_;
    return inner.Dispatch(again);
  }
  Status OnDispatch(gpu::BackendCommandBuffer& inner,
                    const gpu::BackendDispatch& dispatch) override {
    if (begun_ == 1) {
      dispatch_ = dispatch;
      bindings_.assign(dispatch.bindings.begin(), dispatch.bindings.end());
      constants_.assign(dispatch.constants.begin(), dispatch.constants.end());
    }
    return inner.Dispatch(dispatch);
  }

 private:
  uint64_t begun_ = 0;
  gpu::BackendDispatch dispatch_;
  std::vector<gpu::BackendBinding> bindings_;
  std::vector<std::byte> constants_;
};

// Two dispatches of one command buffer that lost their order.
struct Pair {
  std::string_view rule;  // "raw", "war" or "waw".
  int first = 0;
  std::string_view first_kernel;
  int second = 0;
  std::string_view second_kernel;
  std::string_view buffer;
  ByteRange range = {0, 256};
  int command_buffer = 1;
};

// As the checker names it.
std::string FindingOf(const Pair& pair) {
  return fmt::format("{0} {1}:{2} {3} -> {1}:{4} {5} {6}[{7},{8})", pair.rule, pair.command_buffer,
                     pair.first, pair.first_kernel, pair.second, pair.second_kernel, pair.buffer,
                     pair.range.begin, pair.range.end);
}

std::string FindingsOf(const std::vector<Pair>& pairs) {
  std::vector<std::string> findings;
  for (const Pair& pair : pairs) findings.push_back(FindingOf(pair));
  return fmt::format("{}", fmt::join(findings, "; "));
}

// As Wait names it under a schedule.
std::string ReportOf(const Pair& pair) {
  return fmt::format(
      "Dispatch {} of command buffer {} (kernel \"{}\") {} bytes [{}, {}) of buffer \"{}\", which "
      "dispatch {} (kernel \"{}\") {}; no barrier stands between them.",
      pair.second, pair.command_buffer, pair.second_kernel, pair.rule == "raw" ? "reads" : "writes",
      pair.range.begin, pair.range.end, pair.buffer, pair.first, pair.first_kernel,
      pair.rule == "war" ? "reads" : "writes");
}

// A program of the stage with the fences that its racy twin lacks.
struct OrderingCase {
  int kind = 0;
  std::string_view name;
  StageProgram program = nullptr;
  Lost lost;
  // What is then unordered, in the checker's order.
  std::vector<Pair> pairs;
  // The schedules without a seed that leave other bits.
  std::string_view other_bits;
  gpu::BarrierMode mode = gpu::BarrierMode::kManual;
  bool smuggled = false;
  // Of `pairs`, the one that Wait names under a schedule: the lowest bindings come first.
  size_t reported = 0;
  // Which barrier of the whole program fence `lost.first` is, and how many it has; 0: the order
  // that is lost is not a barrier's.
  size_t barrier = 1;
  size_t barriers = 1;
};

std::vector<Pair> WritePairs() {
  std::vector<Pair> pairs;
  for (int i = 1; i < 64; ++i) pairs.push_back({"waw", i, "add", i + 1, "add", "o"});
  return pairs;
}

std::vector<OrderingCase> OrderingCases() {
  const std::vector<Pair> steps = {{"raw", 2, "add", 3, "mul", "state"},
                                   {"war", 2, "add", 3, "mul", "tmp"}};
  const Pair x1 = {"raw", 1, "add", 2, "mul", "x1"};
  const Pair x2 = {"raw", 2, "mul", 3, "mul", "x2"};
  const Pair x3 = {"raw", 3, "mul", 4, "mul", "x3"};
  return {
      {.kind = 1,
       .name = "a barrier between two steps",
       .program = TwoStepsInOne,
       .lost = {2, 2},
       .pairs = steps,
       .other_bits = "reversed late-writes",
       .reported = 1,
       .barrier = 2,
       .barriers = 3},
      {.kind = 1,
       .name = "the end of a command buffer between two steps",
       .program = TwoStepsApart,
       .lost = {2, 2},
       .pairs = steps,
       .other_bits = "reversed late-writes",
       .reported = 1,
       .barrier = 0},
      {.kind = 2,
       .name = "residual, then norm",
       .program = ResidualThenNorm,
       .lost = {1, 1},
       .pairs = {{"raw", 1, "matmul_add.f32", 2, "rms_norm_plain.f32", "x"}},
       .other_bits = "reversed late-writes",
       .barriers = 2},
      {.kind = 3,
       .name = "a value overwritten in place",
       .program = OverwriteAfterRead,
       .lost = {1, 1},
       .pairs = {{"war", 1, "mul", 2, "add", "g"}},
       .other_bits = "reversed"},
      {.kind = 4,
       .name = "64 writes in a row",
       .program = WritesInARow,
       .lost = kAllLost,
       .pairs = WritePairs(),
       .other_bits = "reversed",
       .barriers = 63},
      {.kind = 5,
       .name = "a producer that the tracker does not see",
       .program = ReaderOfAHiddenProducer,
       .lost = {2, 2},
       .pairs = {{"raw", 1, "add", 3, "mul", "x", {0, 256}, 2}},
       .other_bits = "reversed late-writes",
       .mode = gpu::BarrierMode::kAutomatic,
       .smuggled = true},
      {.kind = 6,
       .name = "all three edges of a chain",
       .program = ChainOfFour,
       .lost = {1, 3},
       .pairs = {x1, x2, x3},
       .other_bits = "reversed late-writes",
       .barriers = 3},
      {.kind = 6,
       .name = "two edges of a chain, the first one mended",
       .program = ChainOfFour,
       .lost = {2, 3},
       .pairs = {x2, x3},
       .other_bits = "reversed late-writes",
       .barrier = 2,
       .barriers = 3},
      {.kind = 6,
       .name = "the last edge of a chain, the others mended",
       .program = ChainOfFour,
       .lost = {3, 3},
       .pairs = {x3},
       .other_bits = "reversed late-writes",
       .barrier = 3,
       .barriers = 3},
      {.kind = 10,
       .name = "a small reader of a large product",
       .program = SmallReaderOfALargeProduct,
       .lost = {1, 1},
       .pairs = {{"raw", 1, "matmul.f32", 2, "add", "product", {7936, 8192}}},
       .other_bits = "reversed late-writes"},
      {.kind = 10,
       .name = "the smoke program",
       .program = Smoke,
       .lost = {1, 1},
       .pairs = {{"raw", 1, "add", 2, "mul", "tmp", {0, 16384}}},
       .other_bits = "reversed late-writes"},
  };
}

Status RunOn(gpu::Device& device, const OrderingCase& tested, Lost lost) {
  ASSAY_ASSIGN_OR_RETURN(const auto stage, Stage::Create(&device, lost, tested.mode));
  tested.program(*stage);
  return stage->Finish();
}

std::unique_ptr<gpu::Backend> Smuggle(std::unique_ptr<gpu::Backend> inner) {
  return std::make_unique<SmuggledDispatch>(std::move(inner));
}

std::string CheckCase(const OrderingCase& tested, Lost lost) {
  return CheckProgram([&](gpu::Device& device) { return RunOn(device, tested, lost); },
                      tested.smuggled ? Smuggle : Around());
}

// --- Under schedules

// "invalid-argument tmp: Dispatch 2 ...; other bits under reversed".
std::string ScheduleFinding(const Pair& reported, std::string_view other_bits) {
  return fmt::format("invalid-argument {}: {}; other bits under {}", reported.buffer,
                     ReportOf(reported), other_bits);
}

Twin ScheduleTwin(const OrderingCase& tested) {
  const OutcomeOn run = [tested](gpu::Device& device, Lost lost) -> Result<Outcome> {
    ASSAY_ASSIGN_OR_RETURN(const auto stage, Stage::Create(&device, lost, tested.mode));
    tested.program(*stage);
    return OutcomeOf(*stage);
  };
  const Pair& reported = tested.pairs[tested.reported];
  return MakeTwin(
      tested.kind, Catcher::kSchedule, tested.name,
      [tested, run, report = ReportOf(reported)](bool faulty) {
        return TrySchedules(faulty ? tested.lost : kNothingLost,
                            tested.smuggled ? Smuggle : Around(), run, report);
      },
      ScheduleFinding(reported, tested.other_bits));
}

// --- By mutation

// The mutants of the program with its fences, against those of the program with two barriers at
// each fence, either of which can go.
Twin MutationTwin(const OrderingCase& tested) {
  return MakeTwin(
      tested.kind, Catcher::kMutation, tested.name,
      [tested](bool single) {
        const auto run = [&](gpu::Device& device) {
          return RunOn(device, tested, single ? kNothingLost : Lost{.barriers = 2});
        };
        return MutateProgram(run, tested.barrier, tested.smuggled ? Smuggle : Around());
      },
      fmt::format("{0} of {0} killed; {1}: {2}", tested.barriers, tested.barrier,
                  FindingOf(tested.pairs[0])));
}

// --- Kind 7: a list of barriers of a fixed size

// One below, at and one above each power of two up to 1,024.
constexpr std::array<uint64_t, 30> kListSizes = [] {
  std::array<uint64_t, 30> sizes = {1, 2};
  size_t count = 2;
  for (uint64_t power = 2; power <= 1024; power *= 2) {
    if (power > 2) {
      sizes[count++] = power - 1;
      sizes[count++] = power;
    }
    sizes[count++] = power + 1;
  }
  return sizes;
}();

// A chain in place with one barrier more than a list of `size` holds.
Result<std::unique_ptr<Stage>> EncodeChain(gpu::Device& device, uint64_t size, Lost lost) {
  ASSAY_ASSIGN_OR_RETURN(auto stage, Stage::Create(&device, lost));
  const kernels::Matrix x = stage->Input("x", 1, 1);
  const kernels::Matrix a = stage->Input("a", 1, 1);
  stage->Mul(x, a, x);
  for (uint64_t i = 0; i <= size; ++i) {
    stage->Fence();
    if (i == size) {
      stage->Add(x, a, x);
    } else {
      stage->Mul(x, a, x);
    }
  }
  stage->Output(x);
  return stage;
}

constexpr std::string_view kOverflow = "the pair that the first barrier too many ordered";

// What the dispatches do that this barrier orders.
Pair OverflowPair(std::string_view rule, uint64_t size) {
  const int first = static_cast<int>(size) + 1;
  return {rule, first, "mul", first + 1, "add", "x", {0, 4}};
}

std::string CheckChain(int round, bool overflow) {
  const uint64_t size = kListSizes[static_cast<size_t>(round) % kListSizes.size()];
  const Lost lost = overflow ? Lost{size + 1, size + 1} : kNothingLost;
  const std::string said = CheckProgram([&](gpu::Device& device) -> Status {
    ASSAY_ASSIGN_OR_RETURN(const auto stage, EncodeChain(device, size, lost));
    return stage->Finish();
  });
  const bool expected = said == FindingsOf({OverflowPair("raw", size), OverflowPair("waw", size)});
  return expected ? std::string(kOverflow) : said;
}

std::string ScheduleChain(int round, bool overflow) {
  // Sizes up to 65: each dispatch runs under every schedule.
  const uint64_t size = kListSizes[static_cast<size_t>(round) % 18];
  const OutcomeOn run = [size](gpu::Device& device, Lost lost) -> Result<Outcome> {
    ASSAY_ASSIGN_OR_RETURN(const auto stage, EncodeChain(device, size, lost));
    return OutcomeOf(*stage);
  };
  // It reads x before it writes it, and the lowest bindings are named.
  const Pair reported = OverflowPair("war", size);
  const std::string said =
      TrySchedules(overflow ? Lost{size + 1, size + 1} : kNothingLost, {}, run, ReportOf(reported));
  const bool expected = said == ScheduleFinding(reported, "reversed late-writes");
  return expected ? std::string(kOverflow) : said;
}

std::string MutateChain(int round, bool single) {
  const uint64_t size = kListSizes[static_cast<size_t>(round) % kListSizes.size()];
  const auto run = [&](gpu::Device& device) -> Status {
    const Lost lost = single ? kNothingLost : Lost{.barriers = 2};
    ASSAY_ASSIGN_OR_RETURN(const auto stage, EncodeChain(device, size, lost));
    return stage->Finish();
  };
  const std::string said = MutateProgram(run, size + 1);
  const bool expected = said == fmt::format("{0} of {0} killed; {0}: {1}", size + 1,
                                            FindingOf(OverflowPair("raw", size)));
  return expected ? std::string(kOverflow) : said;
}

Twin ChainTwin(Catcher catcher, std::string (*run)(int round, bool overflow)) {
  return {.kind = 7,
          .catcher = catcher,
          .name = "the first barrier beyond the list",
          .racy = [run](int round) { return run(round, true); },
          .clean = [run](int round) { return run(round, false); },
          .finding = std::string(kOverflow)};
}

}  // namespace

std::vector<Twin> OrderingTwins() {
  std::vector<Twin> twins;
  for (const OrderingCase& tested : OrderingCases()) {
    twins.push_back(MakeTwin(
        tested.kind, Catcher::kHazardCheck, tested.name,
        [tested](bool faulty) { return CheckCase(tested, faulty ? tested.lost : kNothingLost); },
        FindingsOf(tested.pairs)));
    twins.push_back(ScheduleTwin(tested));
    if (tested.barrier > 0) twins.push_back(MutationTwin(tested));
  }
  twins.push_back(GoldenTwin(1, "a trace: two command buffers merged", "merged",
                             "raw 1:1 add_f32 -> 1:2 mul_f32 tmp[0,64)"));
  twins.push_back(ChainTwin(Catcher::kHazardCheck, CheckChain));
  twins.push_back(ChainTwin(Catcher::kSchedule, ScheduleChain));
  twins.push_back(ChainTwin(Catcher::kMutation, MutateChain));
  return twins;
}

}  // namespace assay::faults
