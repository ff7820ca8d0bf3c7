// The table of fusion rules. A row names the kernels of its parts, the value that goes from one to
// the next, the bindings that stay, and the launch of the fused kernel.
#include <algorithm>
#include <array>
#include <cstring>

#include "assay/kernels.h"

#include "kernels/attention/attention.h"
#include "kernels/down_by_expert_sum/down_by_expert_sum.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gate_up/gate_up.h"
#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/head_norm_rope_append/head_norm_rope_append.h"
#include "kernels/launch.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/norm_route/norm_route.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/target.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
namespace {

using gpu::BindingPair;
using gpu::Dispatch;
using gpu::FusedBinding;
using gpu::FusedLaunch;
using gpu::FusionRule;
using Parts = std::span<const Dispatch>;

constexpr Access kR = Access::kRead;
constexpr Access kW = Access::kWrite;
constexpr Access kRW = Access::kReadWrite;
constexpr uint32_t kMostShared = 256 << 10;
// A larger router is read faster by several workgroups than the barriers cost.
constexpr uint64_t kLargestRouterBytes = 64 << 10;

template <typename Constants>
Constants ConstantsOf(const Dispatch& part) {
  Constants constants;
  std::memcpy(&constants, part.constants.data(), sizeof(constants));
  return constants;
}

bool Take(const Launch& launch, FusedLaunch& fused) {
  static_assert(sizeof(launch.constants) <= sizeof(fused.constants));
  std::memcpy(fused.constants.data(), launch.constants.data(), launch.constant_bytes);
  fused.constant_bytes = launch.constant_bytes;
  fused.grid = launch.grid;
  fused.shared_bytes = launch.shared_bytes;
  return launch.shared_bytes <= kMostShared;
}

const gpu::BufferView& ViewOf(const Dispatch& part, size_t binding) {
  return part.bindings[binding].view;
}
bool SameView(const gpu::BufferView& a, const gpu::BufferView& b) {
  return a.buffer() == b.buffer() && a.range() == b.range();
}

// --- Ops that round their own output

bool NormMul(Parts parts, FusedLaunch& fused) {
  const auto norm = ConstantsOf<RmsNormConstants>(parts[0]);
  // Only of one row is the other factor a row of weights; and rms_norm does not write its weights.
  if (parts[0].grid.x != 1 || SameView(ViewOf(parts[1], 1), ViewOf(parts[1], 2))) return false;
  return Take(LaunchRmsNorm(1, norm.cols, norm.eps, true, ActivationFormat::kF32), fused);
}
bool NormQuantize(Parts parts, FusedLaunch& fused) {
  const auto norm = ConstantsOf<RmsNormConstants>(parts[0]);
  return Take(LaunchRmsNorm(parts[0].grid.x, norm.cols, norm.eps, norm.has_weight != 0,
                            ActivationFormat::kQ8),
              fused);
}
bool SiluQuantize(Parts parts, FusedLaunch& fused) {
  const auto silu = ConstantsOf<SiluMulConstants>(parts[0]);
  return Take(LaunchSiluMul(parts[0].grid.y, silu.cols, ActivationFormat::kQ8), fused);
}
template <DType kCache>
bool AttentionQuantize(Parts parts, FusedLaunch& fused) {
  const auto c = ConstantsOf<AttentionConstants>(parts[0]);
  return AttentionWritesWholeBlocks(c.heads, c.kv_heads, c.head_dim) &&
         Take(LaunchAttention(kCache, ActivationFormat::kQ8, c.tokens, c.heads, c.kv_heads,
                              c.head_dim, c.first_position, c.scale),
              fused);
}
template <Target kTarget>
bool NormRope(Parts parts, FusedLaunch& fused) {
  const auto norm = ConstantsOf<HeadNormRopeConstants>(parts[0]);
  const auto rope = ConstantsOf<HeadNormRopeConstants>(parts[1]);
  return norm.cols == rope.cols && norm.head_dim == rope.head_dim &&
         parts[0].grid == parts[1].grid &&
         Take(LaunchHeadNormRope(parts[0].grid.x, norm.cols, norm.head_dim, norm.eps, true,
                                 rope.first_position, rope.base, kTarget),
              fused);
}
template <Target kTarget, DType kType>
bool MatMulAdd(Parts parts, FusedLaunch& fused) {
  const auto c = ConstantsOf<MatMulConstants>(parts[0]);
  return Take(LaunchMatMul(kType, c.rows, c.cols, c.tokens, true, kTarget), fused);
}
bool WeightedSumAdd(Parts parts, FusedLaunch& fused) {
  const auto c = ConstantsOf<WeightedSumConstants>(parts[0]);
  return Take(LaunchWeightedSum(parts[0].grid.y, c.cols, c.used, true), fused);
}

// --- Ops that keep what lies between their parts in shared memory

template <Target kTarget, DType kType, ActivationFormat kOut>
bool GateUp(Parts parts, FusedLaunch& fused) {
  const auto gate = ConstantsOf<MatMulConstants>(parts[0]);
  const auto up = ConstantsOf<MatMulConstants>(parts[1]);
  // Several tokens share the reading of the weights when the products stand alone.
  return gate.rows == up.rows && gate.cols == up.cols && gate.tokens == 1 && up.tokens == 1 &&
         Take(LaunchGateUp(kType, gate.rows, gate.cols, 1, kOut, kTarget), fused);
}
template <Target kTarget, DType kType, ActivationFormat kOut>
bool GateUpByExpert(Parts parts, FusedLaunch& fused) {
  const auto gate = ConstantsOf<MatMulByExpertConstants>(parts[0]);
  const auto up = ConstantsOf<MatMulByExpertConstants>(parts[1]);
  return std::memcmp(&gate, &up, sizeof(gate)) == 0 && gate.by_expert == 0 &&
         Take(LaunchGateUpByExpert(kType, gate.rows, gate.cols, gate.experts, gate.pairs, gate.fan,
                                   kOut, kTarget),
              fused);
}
template <Target kTarget, DType kType>
bool DownByExpertSum(Parts parts, FusedLaunch& fused) {
  const auto down = ConstantsOf<MatMulByExpertConstants>(parts[0]);
  const auto sum = ConstantsOf<WeightedSumConstants>(parts[1]);
  return down.by_expert == 0 && down.fan == 1 && sum.cols == down.rows &&
         down.pairs == parts[1].grid.y * sum.used &&
         Take(LaunchDownByExpertSum(kType, down.rows, down.cols, down.experts, parts[1].grid.y,
                                    sum.used, kTarget),
              fused);
}
template <Target kTarget>
bool RouterOfNorm(Parts parts, FusedLaunch& fused) {
  const auto norm = ConstantsOf<RmsNormConstants>(parts[0]);
  const auto router = ConstantsOf<MatMulConstants>(parts[1]);
  const auto route = ConstantsOf<RouteConstants>(parts[2]);
  return norm.has_weight != 0 && router.cols == norm.cols && router.rows == route.experts &&
         router.tokens == 1 &&
         uint64_t{router.rows} * router.cols * sizeof(float) <= kLargestRouterBytes &&
         Take(LaunchNormRoute(1, norm.cols, norm.eps, route.experts, route.used,
                              route.normalise != 0, kTarget),
              fused);
}
template <Target kTarget, DType kCache>
bool HeadAppend(Parts parts, FusedLaunch& fused) {
  const auto head = ConstantsOf<HeadNormRopeConstants>(parts[0]);
  // Both have a row of workgroups for each row of k.
  return parts[0].grid.x == parts[1].grid.x &&
         Take(LaunchHeadNormRopeAppend(kCache, parts[0].grid.x, head.cols, head.head_dim, head.eps,
                                       head.first_position, head.base, kTarget),
              fused);
}

// --- Which value goes where, and which bindings stay

constexpr std::array kFirstOut1 = {BindingPair{{0, 1}, {1, 0}}};
constexpr std::array kFirstOut2 = {BindingPair{{0, 2}, {1, 0}}};
constexpr std::array kFirstOut3 = {BindingPair{{0, 3}, {1, 0}}};
constexpr std::array kInPlace = {BindingPair{{0, 0}, {1, 0}}};
constexpr std::array kGateUpLinks = {BindingPair{{0, 2}, {2, 0}}, BindingPair{{1, 2}, {2, 1}}};
constexpr std::array kGateUpSame = {BindingPair{{0, 1}, {1, 1}}};
constexpr std::array kExpertLinks = {BindingPair{{0, 3}, {2, 0}}, BindingPair{{1, 3}, {2, 1}}};
constexpr std::array kExpertSame = {BindingPair{{0, 1}, {1, 1}}, BindingPair{{0, 2}, {1, 2}}};
constexpr std::array kRouterLinks = {BindingPair{{0, 2}, {1, 1}}, BindingPair{{1, 2}, {2, 0}}};

constexpr std::array kNormMulBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{1, 1}, kR},
                                         FusedBinding{{1, 2}, kW}};
constexpr std::array kOneInBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{1, 1}, kW}};
constexpr std::array kTwoInBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                       FusedBinding{{1, 1}, kW}};
constexpr std::array kThreeInBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                         FusedBinding{{0, 2}, kR}, FusedBinding{{1, 1}, kW}};
constexpr std::array kNormRopeBindings = {FusedBinding{{0, 0}, kRW}, FusedBinding{{0, 1}, kR}};
constexpr std::array kAddBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                     FusedBinding{{1, 2}, kW}, FusedBinding{{1, 1}, kR}};
constexpr std::array kGateUpBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{1, 0}, kR},
                                        FusedBinding{{0, 1}, kR}, FusedBinding{{2, 2}, kW}};
constexpr std::array kExpertBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                        FusedBinding{{1, 0}, kR}, FusedBinding{{0, 2}, kR},
                                        FusedBinding{{2, 2}, kW}};
constexpr std::array kDownBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                      FusedBinding{{0, 2}, kR}, FusedBinding{{1, 1}, kR},
                                      FusedBinding{{1, 2}, kW}, FusedBinding{{1, 3}, kR}};
constexpr std::array kRouterBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                        FusedBinding{{1, 0}, kR}, FusedBinding{{0, 2}, kW},
                                        FusedBinding{{2, 1}, kW}, FusedBinding{{2, 2}, kW}};
constexpr std::array kAppendBindings = {FusedBinding{{0, 0}, kR}, FusedBinding{{0, 1}, kR},
                                        FusedBinding{{1, 1}, kR}, FusedBinding{{1, 2}, kW},
                                        FusedBinding{{1, 3}, kW}};

// --- The table

template <size_t kCount>
using Names = std::array<std::string_view, kCount>;

constexpr Names<2> kNormMulParts = {"rms_norm_plain.f32", "mul"};
constexpr Names<2> kNormQuantizeParts = {"rms_norm.f32", "quantize.q8"};
constexpr Names<2> kPlainQuantizeParts = {"rms_norm_plain.f32", "quantize.q8"};
constexpr Names<2> kSiluQuantizeParts = {"silu_mul.f32", "quantize.q8"};
constexpr Names<2> kAttentionF32Parts = {"attention.f32.f32", "quantize.q8"};
constexpr Names<2> kAttentionF16Parts = {"attention.f16.f32", "quantize.q8"};
constexpr Names<2> kNormRopeParts = {"head_norm", "rope"};
constexpr Names<2> kWeightedSumParts = {"weighted_sum", "add"};
constexpr Names<3> kRouterParts = {"rms_norm.f32", "matmul.f32", "route"};
constexpr Names<2> kAppendF32Parts = {"head_norm_rope", "kv_append.f32"};
constexpr Names<2> kAppendF16Parts = {"head_norm_rope", "kv_append.f16"};

template <Target kTarget>
constexpr std::array kOnceRules = {
    FusionRule{"rms_norm.f32", kNormMulParts, kFirstOut1, {}, kNormMulBindings, NormMul},
    FusionRule{"rms_norm.q8", kNormQuantizeParts, kFirstOut2, {}, kTwoInBindings, NormQuantize},
    FusionRule{
        "rms_norm_plain.q8", kPlainQuantizeParts, kFirstOut1, {}, kOneInBindings, NormQuantize},
    FusionRule{"silu_mul.q8", kSiluQuantizeParts, kFirstOut2, {}, kTwoInBindings, SiluQuantize},
    FusionRule{"attention.f32.q8",
               kAttentionF32Parts,
               kFirstOut3,
               {},
               kThreeInBindings,
               AttentionQuantize<DType::kF32>},
    FusionRule{"attention.f16.q8",
               kAttentionF16Parts,
               kFirstOut3,
               {},
               kThreeInBindings,
               AttentionQuantize<DType::kF16>},
    FusionRule{
        "head_norm_rope", kNormRopeParts, kInPlace, {}, kNormRopeBindings, NormRope<kTarget>},
    FusionRule{"weighted_sum_add", kWeightedSumParts, kFirstOut2, {}, kAddBindings, WeightedSumAdd},
    FusionRule{
        "norm_route", kRouterParts, kRouterLinks, {}, kRouterBindings, RouterOfNorm<kTarget>},
    FusionRule{"head_norm_rope_append.f32",
               kAppendF32Parts,
               kInPlace,
               {},
               kAppendBindings,
               HeadAppend<kTarget, DType::kF32>},
    FusionRule{"head_norm_rope_append.f16",
               kAppendF16Parts,
               kInPlace,
               {},
               kAppendBindings,
               HeadAppend<kTarget, DType::kF16>},
};

// Those of one weight type, whose word in kernel names is WORD.
#define ASSAY_TYPED_RULES(TYPE, WORD)                                                              \
  constexpr Names<2> kMatMulAdd##TYPE = {"matmul." WORD, "add"};                                   \
  constexpr Names<2> kMatMulTileAdd##TYPE = {"matmul_tile." WORD, "add"};                          \
  constexpr Names<3> kGateUpF32##TYPE = {"matmul." WORD, "matmul." WORD, "silu_mul.f32"};          \
  constexpr Names<3> kGateUpQ8##TYPE = {"matmul." WORD, "matmul." WORD, "silu_mul.q8"};            \
  constexpr Names<3> kExpertF32##TYPE = {"matmul_by_expert." WORD, "matmul_by_expert." WORD,       \
                                         "silu_mul.f32"};                                          \
  constexpr Names<3> kExpertQ8##TYPE = {"matmul_by_expert." WORD, "matmul_by_expert." WORD,        \
                                        "silu_mul.q8"};                                            \
  constexpr Names<2> kDown##TYPE = {"matmul_by_expert." WORD, "weighted_sum_add"};                 \
  template <Target kTarget>                                                                        \
  constexpr std::array kRules##TYPE = {                                                            \
      FusionRule{"matmul_add." WORD,                                                               \
                 kMatMulAdd##TYPE,                                                                 \
                 kFirstOut2,                                                                       \
                 {},                                                                               \
                 kAddBindings,                                                                     \
                 MatMulAdd<kTarget, DType::k##TYPE>},                                              \
      FusionRule{"matmul_tile_add." WORD,                                                          \
                 kMatMulTileAdd##TYPE,                                                             \
                 kFirstOut2,                                                                       \
                 {},                                                                               \
                 kAddBindings,                                                                     \
                 MatMulAdd<kTarget, DType::k##TYPE>},                                              \
      FusionRule{"gate_up." WORD ".f32", kGateUpF32##TYPE, kGateUpLinks, kGateUpSame,              \
                 kGateUpBindings, GateUp<kTarget, DType::k##TYPE, ActivationFormat::kF32>},        \
      FusionRule{"gate_up." WORD ".q8", kGateUpQ8##TYPE, kGateUpLinks, kGateUpSame,                \
                 kGateUpBindings, GateUp<kTarget, DType::k##TYPE, ActivationFormat::kQ8>},         \
      FusionRule{"gate_up_by_expert." WORD ".f32", kExpertF32##TYPE, kExpertLinks, kExpertSame,    \
                 kExpertBindings,                                                                  \
                 GateUpByExpert<kTarget, DType::k##TYPE, ActivationFormat::kF32>},                 \
      FusionRule{"gate_up_by_expert." WORD ".q8", kExpertQ8##TYPE, kExpertLinks, kExpertSame,      \
                 kExpertBindings, GateUpByExpert<kTarget, DType::k##TYPE, ActivationFormat::kQ8>}, \
      FusionRule{"down_by_expert_sum." WORD,                                                       \
                 kDown##TYPE,                                                                      \
                 kFirstOut3,                                                                       \
                 {},                                                                               \
                 kDownBindings,                                                                    \
                 DownByExpertSum<kTarget, DType::k##TYPE>}}
ASSAY_TYPED_RULES(F32, "f32");
ASSAY_TYPED_RULES(F16, "f16");
ASSAY_TYPED_RULES(BF16, "bf16");
ASSAY_TYPED_RULES(Q8_0, "q8_0");
ASSAY_TYPED_RULES(Q4_0, "q4_0");
#undef ASSAY_TYPED_RULES

template <size_t... kCounts>
constexpr auto Join(const std::array<FusionRule, kCounts>&... tables) {
  std::array<FusionRule, (kCounts + ...)> joined{};
  auto* to = joined.data();
  ((to = std::copy(tables.begin(), tables.end(), to)), ...);
  return joined;
}
template <Target kTarget>
constexpr auto kAllRules = Join(kOnceRules<kTarget>, kRulesF32<kTarget>, kRulesF16<kTarget>,
                                kRulesBF16<kTarget>, kRulesQ8_0<kTarget>, kRulesQ4_0<kTarget>);

template <Target kTarget, bool (*kKeep)(const FusionRule&)>
constexpr auto kRulesThat = [] {
  constexpr auto kAll = kAllRules<kTarget>;
  std::array<FusionRule, static_cast<size_t>(std::ranges::count_if(kAll, kKeep))> rules{};
  std::ranges::copy_if(kAll, rules.begin(), kKeep);
  return rules;
}();

// Tiles are shaders alone; and for kQ8 outputs there are none.
constexpr bool IsForCpu(const FusionRule& rule) { return !rule.kernel.starts_with("matmul_tile"); }
constexpr bool IsForSpirv(const FusionRule& rule) { return !rule.kernel.ends_with(".q8"); }

}  // namespace

std::span<const FusionRule> FusionRules(const gpu::DeviceInfo& info) {
  if (TargetOf(info.code_format) == Target::kSpirv) return kRulesThat<Target::kSpirv, IsForSpirv>;
  return kRulesThat<Target::kCpu, IsForCpu>;
}

}  // namespace assay::kernels
