// E10: every rule, on a program that it fuses: the bits of all that outlives it, and the kernel
// that it says.
#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "gpu/backend.h"
#include "kernels/kernel_table.h"
#include "kernels/ops_cases.h"
#include "kernels/spy_backend.h"
#include "tests/conformance/executing_backends.h"

namespace assay::kernels {
namespace {

using testing::Operands;

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0};
constexpr auto kF32 = ActivationFormat::kF32;
constexpr auto kQ8 = ActivationFormat::kQ8;

Matrix AsMatrix(const Activations& x) { return {x.view, DType::kF32, x.rows, x.cols}; }
Activations AsActivations(const Matrix& x) { return {x.view, kF32, x.rows, x.cols}; }

// A run of operations that `kernel` replaces; what lies between them goes into `between`.
struct Program {
  std::string kernel;
  std::function<Status(Ops&, gpu::Session&, Operands&, std::vector<gpu::BufferView>& between)>
      encode;
};

#define ASSAY_CODE(...)                                         \
  [=]([[maybe_unused]] Ops& ops, gpu::Session& s, Operands& o,  \
      std::vector<gpu::BufferView>& between) -> Status {        \
    const auto room = [&](uint32_t rows, uint32_t cols) {       \
      const Matrix made = AsMatrix(o.Output(kF32, rows, cols)); \
      between.push_back(made.view);                             \
      return made;                                              \
    };                                                          \
    (void)room;                                                 \
    __VA_ARGS__                                                 \
  }

// `many`: the kernel that adds to the products of several tokens, without its type.
void AddTyped(DType type, const std::string& word, const std::string& many,
              std::vector<Program>& programs) {
  for (const uint32_t tokens : {1u, 2u}) {
    programs.push_back({(tokens == 1 ? "matmul_add." : many) + word, ASSAY_CODE({
                          const Matrix t = room(tokens, 35), x = o.F32(tokens, 35);
                          ASSAY_TRY(ops.MatMul(s, o.Weights(type, 35, 64),
                                               o.Input(ops.InputFormat(type), tokens, 64), t));
                          return ops.Add(s, t, x, x);
                        })});
  }
  for (const auto& [format, suffix] : {std::pair{kF32, ".f32"}, {kQ8, ".q8"}}) {
    const ActivationFormat out = format;
    programs.push_back({"gate_up." + word + suffix, ASSAY_CODE({
                          const Matrix g = room(1, 96), u = room(1, 96);
                          const Activations x = o.Input(ops.InputFormat(type), 1, 64);
                          ASSAY_TRY(ops.MatMul(s, o.Weights(type, 96, 64), x, g));
                          ASSAY_TRY(ops.MatMul(s, o.Weights(type, 96, 64), x, u));
                          return ops.SiluMul(s, g, u, o.Output(out, 1, 96));
                        })});
    programs.push_back(
        {"gate_up_by_expert." + word + suffix, ASSAY_CODE({
           const Matrix g = room(2, 32), u = room(2, 32);
           const Activations x = o.Input(ops.InputFormat(type), 1, 64);
           const gpu::BufferView ids = o.Values(o.Ids(2, 8));
           ASSAY_TRY(ops.MatMulByExpert(s, o.Weights(type, 8 * 32, 64), 8, ids, x, g));
           ASSAY_TRY(ops.MatMulByExpert(s, o.Weights(type, 8 * 32, 64), 8, ids, x, u));
           return ops.SiluMul(s, g, u, o.Output(out, 2, 32));
         })});
  }
  programs.push_back({"down_by_expert_sum." + word, ASSAY_CODE({
                        const Matrix t = room(3, 24), x = o.F32(1, 24);
                        ASSAY_TRY(ops.MatMulByExpert(s, o.Weights(type, 8 * 24, 64), 8,
                                                     o.Values(o.Ids(3, 8)),
                                                     o.Input(ops.InputFormat(type), 3, 64), t));
                        return ops.WeightedSum(s, t, o.F32(1, 3).view, 3, x, x.view);
                      })});
}

void AddCached(DType type, const std::string& word, std::vector<Program>& programs) {
  programs.push_back({"attention." + word + ".q8", ASSAY_CODE({
                        const Matrix t = room(2, 128);
                        ASSAY_TRY(ops.Attention(s, o.F32(2, 128), o.Cache(type, 16, 64),
                                                o.Cache(type, 16, 64), 32, 7, 0.2f,
                                                AsActivations(t)));
                        return ops.Quantize(s, t, o.Output(kQ8, 2, 128));
                      })});
  programs.push_back({"head_norm_rope_append." + word, ASSAY_CODE({
                        // Written first: what comes from before the graph is not scratch.
                        const Matrix k = room(2, 48);
                        ASSAY_TRY(ops.Add(s, o.F32(2, 48), o.F32(2, 48), k));

                        ASSAY_TRY(ops.HeadNormRope(s, k, 24, o.F32(1, 24).view, 1e-6f, 5, 1e4f));
                        return ops.KvAppend(s, k, o.F32(2, 48), 5, o.Cache(type, 9, 48),
                                            o.Cache(type, 9, 48));
                      })});
}

std::vector<Program> AllPrograms(bool tiles) {
  std::vector<Program> programs;
  for (const DType type : kTypes) {
    std::string word(DTypeName(type));
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    AddTyped(type, word, tiles ? "matmul_tile_add." : "matmul_add.", programs);
  }
  AddCached(DType::kF32, "f32", programs);
  AddCached(DType::kF16, "f16", programs);
  programs.push_back({"rms_norm.f32", ASSAY_CODE({
                        const Matrix t = room(1, 96);
                        ASSAY_TRY(ops.RmsNorm(s, o.F32(1, 96), {}, 1e-6f, AsActivations(t)));
                        return ops.Mul(s, t, o.F32(1, 96), AsMatrix(o.Output(kF32, 1, 96)));
                      })});
  programs.push_back(
      {"rms_norm.q8", ASSAY_CODE({
         const Matrix t = room(3, 96);
         ASSAY_TRY(ops.RmsNorm(s, o.F32(3, 96), o.F32(1, 96).view, 1e-6f, AsActivations(t)));
         return ops.Quantize(s, t, o.Output(kQ8, 3, 96));
       })});
  programs.push_back({"rms_norm_plain.q8", ASSAY_CODE({
                        const Matrix t = room(3, 96);
                        ASSAY_TRY(ops.RmsNorm(s, o.F32(3, 96), {}, 1e-6f, AsActivations(t)));
                        return ops.Quantize(s, t, o.Output(kQ8, 3, 96));
                      })});
  programs.push_back({"silu_mul.q8", ASSAY_CODE({
                        const Matrix t = room(3, 2080);
                        ASSAY_TRY(ops.SiluMul(s, o.F32(3, 2080), o.F32(3, 2080), AsActivations(t)));
                        return ops.Quantize(s, t, o.Output(kQ8, 3, 2080));
                      })});
  programs.push_back({"head_norm_rope", ASSAY_CODE({
                        const Matrix x = o.F32(4, 72);
                        ASSAY_TRY(ops.HeadNorm(s, x, 24, o.F32(1, 24).view, 1e-6f));
                        return ops.Rope(s, x, 24, 17, 1e4f);
                      })});
  programs.push_back({"weighted_sum_add", ASSAY_CODE({
                        const Matrix t = room(2, 1100), x = o.F32(2, 1100);
                        ASSAY_TRY(ops.WeightedSum(s, o.F32(6, 1100), o.F32(2, 3).view, 3, t));
                        return ops.Add(s, t, x, x);
                      })});
  programs.push_back(
      {"norm_route", ASSAY_CODE({
         const Matrix norm = AsMatrix(o.Output(kF32, 1, 96));
         const Matrix logits = room(1, 20);
         ASSAY_TRY(ops.RmsNorm(s, o.F32(1, 96), o.F32(1, 96).view, 1e-6f, AsActivations(norm)));
         ASSAY_TRY(ops.MatMul(s, o.F32(20, 96), AsActivations(norm), logits));
         return ops.Route(s, logits, 4, true, o.Garbage(16), o.Garbage(16));
       })});
  return programs;
}

// All buffers after a run; those of `between` empty.
std::vector<std::vector<std::byte>> RunProgram(const std::string& name, const Program& program,
                                               bool fuse) {
  auto backend =
      std::make_unique<testing::SpyBackend>(gpu::MakeBackend(name, {.threads = 2}).value());
  testing::SpyBackend& spy = *backend;
  auto device = gpu::Device::Create(std::move(backend)).value();
  auto ops = Ops::Create(device.get()).value();
  auto session = device->CreateSession().value();
  Operands operands(device.get(), 91);
  std::vector<gpu::BufferView> between;
  EXPECT_TRUE(session->BeginCapture().has_value());
  const Status encoded = program.encode(*ops, *session, operands, between);
  EXPECT_TRUE(encoded.has_value()) << encoded.error().ToString();
  const gpu::Graph graph = session->EndCapture().value();
  const gpu::Graph* const sample = &graph;
  const auto plan = gpu::GraphPlan::Create(
      *device, {&sample, 1}, {.fusions = FusionRules(device->info()), .scratch = between});
  EXPECT_TRUE(plan.has_value()) << plan.error().ToString();
  EXPECT_EQ(plan->report().fusions, 1u);
  EXPECT_TRUE((fuse ? session->Replay(graph, *plan) : session->Replay(graph)).has_value());
  EXPECT_EQ(spy.seen().size(), fuse ? plan->report().dispatches : graph.dispatch_count());
  if (fuse) {
    EXPECT_EQ(spy.seen().back().kernel, program.kernel);
  }
  EXPECT_TRUE(session->Commit().has_value());
  EXPECT_TRUE(session->Wait().has_value());
  std::vector<std::vector<std::byte>> contents;
  for (const gpu::Buffer& buffer : operands.buffers()) {
    contents.emplace_back(buffer.size_bytes());
    EXPECT_TRUE(device->Read(buffer.All(), contents.back()).has_value());
    for (const gpu::BufferView& view : between) {
      if (view.buffer() == buffer) contents.back().clear();
    }
  }
  return contents;
}

bool Has(std::span<const gpu::FusionRule> rules, std::string_view kernel) {
  return std::ranges::find(rules, kernel, &gpu::FusionRule::kernel) != rules.end();
}

class FusionRulesOn : public ::testing::TestWithParam<std::string> {};

TEST_P(FusionRulesOn, E10_EveryRuleGivesTheBitsOfItsParts) {
  const auto rules = FusionRules(gpu::MakeBackend(GetParam()).value()->info());
  std::set<std::string> seen;
  const bool tiles = Has(rules, "matmul_tile_add.f32");
  for (const Program& program : AllPrograms(tiles)) {
    SCOPED_TRACE(program.kernel);
    if (!Has(rules, program.kernel)) continue;
    EXPECT_EQ(RunProgram(GetParam(), program, true), RunProgram(GetParam(), program, false));
    seen.insert(program.kernel);
  }
  for (const gpu::FusionRule& rule : rules) {
    EXPECT_TRUE(seen.contains(std::string(rule.kernel))) << rule.kernel;
  }
}
INSTANTIATE_TEST_SUITE_P(Backends, FusionRulesOn,
                         ::testing::ValuesIn(gpu::testing::PlainBackends()),
                         gpu::testing::BackendTestName);

// A rule names kernels of the table and binds as many bytes as the fused one takes.
TEST(FusionRules, NameKernelsOfTheTable) {
  const auto find = [](std::string_view name) {
    const auto row = std::ranges::find(KernelTable(), name, &KernelRow::name);
    EXPECT_NE(row, KernelTable().end()) << name;
    return row;
  };
  for (const gpu::FusionRule& rule : FusionRules(gpu::DeviceInfo{})) {
    EXPECT_EQ(find(rule.kernel)->binding_count, rule.bindings.size()) << rule.kernel;
    for (const std::string_view part : rule.parts) find(part);
  }
}

}  // namespace
}  // namespace assay::kernels
