// E10 on random graphs: whatever a plan fuses and moves, the outputs have the bits of the recorded
// order, the recorded trace of the replay is free of hazards, and it holds no more barriers.
#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "assay/gpu.h"
#include "assay/gpu_graph.h"
#include "assay/hazard.h"
#include "assay/record.h"
#include "assay/trace.h"

#include "gpu/backend.h"
#include "tests/conformance/executing_backends.h"
#include "tests/conformance/test_kernels.h"

namespace assay::gpu {
namespace {

using testing::TestDispatch;
using testing::View;

constexpr uint64_t kElements = 56;
constexpr size_t kBuffers = 5;
constexpr size_t kScratch = 4;  // The last buffer's contents count for nothing.

struct Range {
  size_t buffer;
  uint64_t begin;
  uint64_t count;
  bool operator==(const Range&) const = default;
  bool Overlaps(const Range& other) const {
    return buffer == other.buffer && begin < other.begin + other.count &&
           other.begin < begin + count;
  }
};

struct Op {
  std::string kernel;
  std::vector<Range> operands;  // The last one is written.
};

// Reproducible on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t limit) { return engine_() % limit; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

// Views of few places and lengths, so that they often meet, in part and in whole.
Range AnyRange(Random& random, uint64_t count) {
  return {random.Below(kBuffers), random.Below(6) * 8, count};
}

std::vector<Op> AnyProgram(Random& random) {
  std::vector<Op> program;
  const size_t size = 1 + random.Below(14);
  while (program.size() < size) {
    constexpr std::array kKernels = {"add", "add", "add", "mul", "mul", "mul", "bump", "bump"};
    Op op{random.OneIn(20) ? "nothing" : kKernels[random.Below(kKernels.size())], {}};
    const uint64_t count = random.OneIn(3) ? 16 : 8;
    const size_t operands = op.kernel == "bump" ? 1 : op.kernel == "nothing" ? 0 : 3;
    for (size_t i = 0; i < operands; ++i) op.operands.push_back(AnyRange(random, count));
    // What a fusion looks for, more often than chance gives it.
    if (op.kernel == "add" && !random.OneIn(3)) op.operands[2].buffer = kScratch;
    if (op.kernel == "mul" && !program.empty() && !random.OneIn(4)) {
      const Op& earlier =
          program[program.size() - 1 - random.Below(std::min<size_t>(2, program.size()))];
      if (earlier.kernel == "add") {
        for (Range& range : op.operands) range.count = earlier.operands[2].count;
        op.operands[0] = earlier.operands[2];
      }
    }
    // Workgroups of one dispatch may run at once, so operands are apart or the same.
    bool races = false;
    for (size_t i = 0; i + 1 < operands; ++i) {
      races |= op.operands[i].Overlaps(op.operands[2]) && op.operands[i] != op.operands[2];
    }
    if (!races) program.push_back(std::move(op));
  }
  return program;
}

struct Outcome {
  std::vector<std::vector<uint32_t>> contents;
  hazard::Report check;
  PlanReport plan;
};

// Runs the program on fresh buffers: as recorded, a barrier after every dispatch, or by `options`.
Outcome RunProgram(const std::vector<Op>& program, const PlanOptions* options, uint32_t rounds) {
  Outcome outcome;
  std::string text;
  const auto writer = trace::TraceWriter::CreateInMemory(&text, {}).value();
  {
    const auto device = testing::MakeDevice(
        record::MakeRecordingBackend(MakeBackend("cpu", {.threads = 2}).value(), writer.get()));
    std::vector<Buffer> buffers;
    for (size_t b = 0; b < kBuffers; ++b) {
      buffers.push_back(testing::MakeBuffer(*device, kElements * sizeof(float)));
      std::vector<float> values(kElements);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = 0.37f * static_cast<float>(i + 1) - 1.1f * static_cast<float>(b);
      }
      testing::WriteFloats(*device, buffers.back().All(), values);
    }
    const auto view = [&](const Range& range) {
      return View(buffers[range.buffer], range.begin * sizeof(float), range.count * sizeof(float));
    };
    const auto session =
        device
            ->CreateSession(
                {.barriers = options == nullptr ? BarrierMode::kSerial : BarrierMode::kManual})
            .value();
    EXPECT_TRUE(session->BeginCapture().has_value());
    for (const Op& op : program) {
      const TestDispatch dispatch =
          op.kernel == "bump" ? testing::Bump(*device, view(op.operands[0]))
          : op.kernel == "nothing"
              ? TestDispatch(testing::Kernel(*device, "nothing"), {}, 1)
              : testing::Elementwise(*device, op.kernel, view(op.operands[0]), view(op.operands[1]),
                                     view(op.operands[2]));
      EXPECT_TRUE(session->Dispatch(dispatch.get()).has_value());
    }
    const Graph graph = session->EndCapture().value();
    GraphPlan plan;
    if (options != nullptr) {
      PlanOptions with_scratch = *options;
      with_scratch.scratch = {buffers[kScratch].All()};
      const Graph* const sample = &graph;
      auto made = GraphPlan::Create(*device, {&sample, 1}, with_scratch);
      EXPECT_TRUE(made.has_value()) << made.error().ToString();
      if (!made) return outcome;
      plan = std::move(*made);
      outcome.plan = plan.report();
    }
    for (uint32_t round = 0; round < rounds; ++round) {
      const Status replayed =
          options == nullptr ? session->Replay(graph) : session->Replay(graph, plan);
      EXPECT_TRUE(replayed.has_value());
      EXPECT_TRUE(session->Commit().has_value());
      EXPECT_TRUE(session->Wait().has_value());
    }
    for (const Buffer& buffer : buffers) {
      outcome.contents.push_back(testing::ReadWords(*device, buffer.All()));
    }
  }
  EXPECT_TRUE(writer->Close().has_value());
  outcome.check = hazard::CheckTraceText(text, "graph", {}).value();
  return outcome;
}

TEST(GraphProperty, E10_PlansKeepTheBitsAndTheOrderAndNeedNoMoreBarriers) {
  constexpr uint32_t kRounds = 2;  // The second one sees what the first has left in the scratch.
  int fused = 0;
  int moved = 0;
  int fewer = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::vector<Op> program = AnyProgram(random);
    const Outcome recorded = RunProgram(program, nullptr, kRounds);
    PlanOptions options;
    options.fusions = testing::AddMulRule();
    options.look_ahead = std::array{1u, 3u, 64u, 64u}[random.Below(4)];
    const Outcome planned = RunProgram(program, &options, kRounds);
    for (size_t b = 0; b < kBuffers; ++b) {
      if (b != kScratch) {
        EXPECT_EQ(planned.contents[b], recorded.contents[b]);
      }
    }
    EXPECT_EQ(planned.check.hazards(), 0u);
    EXPECT_EQ(planned.check.barriers.issued, planned.check.barriers.least);
    EXPECT_EQ(planned.check.barriers.issued, uint64_t{kRounds} * planned.plan.barriers);
    EXPECT_LE(planned.plan.barriers, planned.plan.barriers_least);
    EXPECT_EQ(recorded.check.barriers.least, uint64_t{kRounds} * planned.plan.barriers_least);
    if (HasFailure()) break;
    fused += planned.plan.fusions > 0;
    moved += planned.plan.moved > 0;
    fewer += planned.plan.barriers < planned.plan.barriers_least;
    refused += !planned.plan.refused.empty();
  }
  // The programs are of the kind that there is something to prove about.
  EXPECT_GT(fused, 40);
  EXPECT_GT(moved, 40);
  EXPECT_GT(fewer, 40);
  EXPECT_GT(refused, 40);
}

}  // namespace
}  // namespace assay::gpu
