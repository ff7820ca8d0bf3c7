// Kinds 1 to 10: missing order inside a command buffer.
#include <array>
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

// A program of the stage with the fences that its racy twin lacks.
struct OrderingCase {
  int kind = 0;
  std::string_view name;
  StageProgram program = nullptr;
  Lost lost;
  // What the checker says of the racy one.
  std::string findings;
  gpu::BarrierMode mode = gpu::BarrierMode::kManual;
  bool smuggled = false;
};

std::string FindingsOfWritesInARow() {
  std::vector<std::string> pairs;
  for (int i = 1; i < 64; ++i) {
    pairs.push_back(fmt::format("waw 1:{} add -> 1:{} add o[0,256)", i, i + 1));
  }
  return fmt::format("{}", fmt::join(pairs, "; "));
}

std::vector<OrderingCase> OrderingCases() {
  return {
      {1,
       "a barrier between two steps",
       TwoStepsInOne,
       {2, 2},
       "raw 1:2 add -> 1:3 mul state[0,256); war 1:2 add -> 1:3 mul tmp[0,256)"},
      {1,
       "the end of a command buffer between two steps",
       TwoStepsApart,
       {2, 2},
       "raw 1:2 add -> 1:3 mul state[0,256); war 1:2 add -> 1:3 mul tmp[0,256)"},
      {2,
       "residual, then norm",
       ResidualThenNorm,
       {1, 1},
       "raw 1:1 matmul_add.f32 -> 1:2 rms_norm_plain.f32 x[0,256)"},
      {3,
       "a value overwritten in place",
       OverwriteAfterRead,
       {1, 1},
       "war 1:1 mul -> 1:2 add g[0,256)"},
      {4, "64 writes in a row", WritesInARow, kAllLost, FindingsOfWritesInARow()},
      {5,
       "a producer that the tracker does not see",
       ReaderOfAHiddenProducer,
       {2, 2},
       "raw 2:1 add -> 2:3 mul x[0,256)",
       gpu::BarrierMode::kAutomatic,
       true},
      {6,
       "all three edges of a chain",
       ChainOfFour,
       {1, 3},
       "raw 1:1 add -> 1:2 mul x1[0,256); raw 1:2 mul -> 1:3 mul x2[0,256); "
       "raw 1:3 mul -> 1:4 mul x3[0,256)"},
      {6,
       "two edges of a chain, the first one mended",
       ChainOfFour,
       {2, 3},
       "raw 1:2 mul -> 1:3 mul x2[0,256); raw 1:3 mul -> 1:4 mul x3[0,256)"},
      {6,
       "the last edge of a chain, the others mended",
       ChainOfFour,
       {3, 3},
       "raw 1:3 mul -> 1:4 mul x3[0,256)"},
      {10,
       "a small reader of a large product",
       SmallReaderOfALargeProduct,
       {1, 1},
       "raw 1:1 matmul.f32 -> 1:2 add product[7936,8192)"},
  };
}

Status RunOn(gpu::Device& device, const OrderingCase& tested, Lost lost) {
  ASSAY_ASSIGN_OR_RETURN(const auto stage, Stage::Create(&device, lost, tested.mode));
  tested.program(*stage);
  return stage->Finish();
}

std::string CheckCase(const OrderingCase& tested, Lost lost) {
  Around around;
  if (tested.smuggled) {
    around = [](std::unique_ptr<gpu::Backend> recorder) -> std::unique_ptr<gpu::Backend> {
      return std::make_unique<SmuggledDispatch>(std::move(recorder));
    };
  }
  return CheckProgram([&](gpu::Device& device) { return RunOn(device, tested, lost); }, around);
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
Status RunChain(gpu::Device& device, uint64_t size, Lost lost) {
  ASSAY_ASSIGN_OR_RETURN(const auto stage, Stage::Create(&device, lost));
  const kernels::Matrix x = stage->Input("x", 1, 1);
  const kernels::Matrix a = stage->Input("a", 1, 1);
  stage->Add(x, a, x);
  for (uint64_t i = 0; i <= size; ++i) {
    stage->Fence();
    stage->Add(x, a, x);
  }
  stage->Output(x);
  return stage->Finish();
}

std::string CheckChain(int round, bool overflow) {
  const uint64_t size = kListSizes[static_cast<size_t>(round) % kListSizes.size()];
  const Lost lost = overflow ? Lost{size + 1, size + 1} : kNothingLost;
  const std::string said =
      CheckProgram([&](gpu::Device& device) { return RunChain(device, size, lost); });
  const std::string pair = fmt::format("1:{} add -> 1:{} add x[0,4)", size + 1, size + 2);
  const std::string expected = fmt::format("raw {0}; waw {0}", pair);
  return said == expected ? "the pair that the first barrier too many ordered" : said;
}

Twin ChainTwin() {
  return {.kind = 7,
          .catcher = Catcher::kHazardCheck,
          .name = "the first barrier beyond the list",
          .racy = [](int round) { return CheckChain(round, true); },
          .clean = [](int round) { return CheckChain(round, false); },
          .finding = "the pair that the first barrier too many ordered"};
}

}  // namespace

std::vector<Twin> OrderingTwins() {
  std::vector<Twin> twins;
  for (const OrderingCase& tested : OrderingCases()) {
    twins.push_back(MakeTwin(
        tested.kind, Catcher::kHazardCheck, tested.name,
        [tested](bool faulty) { return CheckCase(tested, faulty ? tested.lost : kNothingLost); },
        tested.findings));
  }
  twins.push_back(GoldenTwin(1, "a trace: two command buffers merged", "merged",
                             "raw 1:1 add_f32 -> 1:2 mul_f32 tmp[0,64)"));
  twins.push_back(ChainTwin());
  return twins;
}

}  // namespace assay::faults
