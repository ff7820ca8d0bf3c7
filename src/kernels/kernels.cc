#include <array>

#include <fmt/format.h>

#include "kernels/argmax/argmax.h"
#include "kernels/attention/attention.h"
#include "kernels/down_by_expert_sum/down_by_expert_sum.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/gate_up/gate_up.h"
#include "kernels/head_norm_rope/head_norm_rope.h"
#include "kernels/head_norm_rope_append/head_norm_rope_append.h"
#include "kernels/kernel_table.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul_by_expert/matmul_by_expert.h"
#include "kernels/norm_route/norm_route.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/route/route.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/source_digests.h"
#include "kernels/target.h"
#include "kernels/vulkan/spirv_table.h"
#include "kernels/weighted_sum/weighted_sum.h"

namespace assay::kernels {
namespace {

std::string_view TargetName() {
  const Result<Isa>& isa = ProcessIsa();
  return isa ? IsaName(*isa) : "none";
}

// Null where ASSAY_FORCE_ISA names no instruction set of this processor.
template <gpu::CpuWorkgroupFn (*kPick)(Isa)>
gpu::CpuWorkgroupFn Resolve() {
  const Result<Isa>& isa = ProcessIsa();
  return isa ? kPick(*isa) : nullptr;
}

template <typename Constants, gpu::CpuWorkgroupFn (*kPick)(Isa)>
constexpr KernelRow Row(std::string_view name, uint32_t bindings, std::string_view digest) {
  return {.name = name,
          .binding_count = bindings,
          .constant_bytes = sizeof(Constants),
          .pick = kPick,
          .cpu = {.resolve = &Resolve<kPick>, .target = &TargetName},
          .source_digest = digest};
}

template <typename Constants>
constexpr KernelRow ShaderRow(std::string_view name, uint32_t bindings) {
  return {.name = name,
          .binding_count = bindings,
          .constant_bytes = sizeof(Constants),
          .pick = nullptr,
          .cpu = {},
          .source_digest = {}};
}

constexpr auto kTable = std::to_array<KernelRow>({
    Row<EmbeddingConstants, PickEmbeddingF32>("embedding.f32", 3, kDigest_embedding),
    Row<EmbeddingConstants, PickEmbeddingF16>("embedding.f16", 3, kDigest_embedding),
    Row<EmbeddingConstants, PickEmbeddingBF16>("embedding.bf16", 3, kDigest_embedding),
    Row<EmbeddingConstants, PickEmbeddingQ8_0>("embedding.q8_0", 3, kDigest_embedding),
    Row<EmbeddingConstants, PickEmbeddingQ4_0>("embedding.q4_0", 3, kDigest_embedding),
    Row<RmsNormConstants, PickRmsNormF32>("rms_norm.f32", 3, kDigest_rms_norm),
    Row<RmsNormConstants, PickRmsNormQ8>("rms_norm.q8", 3, kDigest_rms_norm),
    Row<RmsNormConstants, PickRmsNormF32>("rms_norm_plain.f32", 2, kDigest_rms_norm),
    Row<RmsNormConstants, PickRmsNormQ8>("rms_norm_plain.q8", 2, kDigest_rms_norm),
    Row<QuantizeConstants, PickQuantizeF32>("quantize.f32", 2, kDigest_quantize),
    Row<QuantizeConstants, PickQuantizeQ8>("quantize.q8", 2, kDigest_quantize),
    Row<MatMulConstants, PickMatMulF32>("matmul.f32", 3, kDigest_matmul),
    Row<MatMulConstants, PickMatMulF16>("matmul.f16", 3, kDigest_matmul),
    Row<MatMulConstants, PickMatMulBF16>("matmul.bf16", 3, kDigest_matmul),
    Row<MatMulConstants, PickMatMulQ8_0>("matmul.q8_0", 3, kDigest_matmul),
    Row<MatMulConstants, PickMatMulQ4_0>("matmul.q4_0", 3, kDigest_matmul),
    Row<MatMulConstants, PickMatMulF32>("matmul_add.f32", 4, kDigest_matmul),
    Row<MatMulConstants, PickMatMulF16>("matmul_add.f16", 4, kDigest_matmul),
    Row<MatMulConstants, PickMatMulBF16>("matmul_add.bf16", 4, kDigest_matmul),
    Row<MatMulConstants, PickMatMulQ8_0>("matmul_add.q8_0", 4, kDigest_matmul),
    Row<MatMulConstants, PickMatMulQ4_0>("matmul_add.q4_0", 4, kDigest_matmul),
    Row<MatMulByExpertConstants, PickMatMulByExpertF32>("matmul_by_expert.f32", 4,
                                                        kDigest_matmul_by_expert),
    Row<MatMulByExpertConstants, PickMatMulByExpertF16>("matmul_by_expert.f16", 4,
                                                        kDigest_matmul_by_expert),
    Row<MatMulByExpertConstants, PickMatMulByExpertBF16>("matmul_by_expert.bf16", 4,
                                                         kDigest_matmul_by_expert),
    Row<MatMulByExpertConstants, PickMatMulByExpertQ8_0>("matmul_by_expert.q8_0", 4,
                                                         kDigest_matmul_by_expert),
    Row<MatMulByExpertConstants, PickMatMulByExpertQ4_0>("matmul_by_expert.q4_0", 4,
                                                         kDigest_matmul_by_expert),
    Row<HeadNormRopeConstants, PickHeadNormRope>("head_norm", 2, kDigest_head_norm_rope),
    Row<HeadNormRopeConstants, PickHeadNormRope>("head_norm_plain", 1, kDigest_head_norm_rope),
    Row<HeadNormRopeConstants, PickHeadNormRope>("head_norm_rope", 2, kDigest_head_norm_rope),
    Row<HeadNormRopeConstants, PickHeadNormRope>("head_norm_rope_plain", 1, kDigest_head_norm_rope),
    Row<HeadNormRopeConstants, PickHeadNormRope>("rope", 1, kDigest_head_norm_rope),
    Row<KvAppendConstants, PickKvAppendF32>("kv_append.f32", 4, kDigest_kv_append),
    Row<KvAppendConstants, PickKvAppendF16>("kv_append.f16", 4, kDigest_kv_append),
    Row<AttentionConstants, PickAttentionF32ToF32>("attention.f32.f32", 4, kDigest_attention),
    Row<AttentionConstants, PickAttentionF32ToQ8>("attention.f32.q8", 4, kDigest_attention),
    Row<AttentionConstants, PickAttentionF16ToF32>("attention.f16.f32", 4, kDigest_attention),
    Row<AttentionConstants, PickAttentionF16ToQ8>("attention.f16.q8", 4, kDigest_attention),
    Row<SiluMulConstants, PickSiluMulF32>("silu_mul.f32", 3, kDigest_silu_mul),
    Row<SiluMulConstants, PickSiluMulQ8>("silu_mul.q8", 3, kDigest_silu_mul),
    Row<ElementwiseConstants, PickAdd>("add", 3, kDigest_elementwise),
    Row<ElementwiseConstants, PickMul>("mul", 3, kDigest_elementwise),
    Row<RouteConstants, PickRoute>("route", 3, kDigest_route),
    Row<WeightedSumConstants, PickWeightedSum>("weighted_sum", 3, kDigest_weighted_sum),
    Row<WeightedSumConstants, PickWeightedSum>("weighted_sum_add", 4, kDigest_weighted_sum),
    Row<ArgMaxConstants, PickArgMax>("argmax", 2, kDigest_argmax),
    Row<GateUpConstants, PickGateUpF32>("gate_up.f32.f32", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF16>("gate_up.f16.f32", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpBF16>("gate_up.bf16.f32", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ8_0>("gate_up.q8_0.f32", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ4_0>("gate_up.q4_0.f32", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF32>("gate_up.f32.q8", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF16>("gate_up.f16.q8", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpBF16>("gate_up.bf16.q8", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ8_0>("gate_up.q8_0.q8", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ4_0>("gate_up.q4_0.q8", 4, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF32>("gate_up_by_expert.f32.f32", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF16>("gate_up_by_expert.f16.f32", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpBF16>("gate_up_by_expert.bf16.f32", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ8_0>("gate_up_by_expert.q8_0.f32", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ4_0>("gate_up_by_expert.q4_0.f32", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF32>("gate_up_by_expert.f32.q8", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpF16>("gate_up_by_expert.f16.q8", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpBF16>("gate_up_by_expert.bf16.q8", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ8_0>("gate_up_by_expert.q8_0.q8", 5, kDigest_gate_up),
    Row<GateUpConstants, PickGateUpQ4_0>("gate_up_by_expert.q4_0.q8", 5, kDigest_gate_up),
    Row<DownByExpertSumConstants, PickDownByExpertSumF32>("down_by_expert_sum.f32", 6,
                                                          kDigest_down_by_expert_sum),
    Row<DownByExpertSumConstants, PickDownByExpertSumF16>("down_by_expert_sum.f16", 6,
                                                          kDigest_down_by_expert_sum),
    Row<DownByExpertSumConstants, PickDownByExpertSumBF16>("down_by_expert_sum.bf16", 6,
                                                           kDigest_down_by_expert_sum),
    Row<DownByExpertSumConstants, PickDownByExpertSumQ8_0>("down_by_expert_sum.q8_0", 6,
                                                           kDigest_down_by_expert_sum),
    Row<DownByExpertSumConstants, PickDownByExpertSumQ4_0>("down_by_expert_sum.q4_0", 6,
                                                           kDigest_down_by_expert_sum),
    Row<NormRouteConstants, PickNormRoute>("norm_route", 6, kDigest_norm_route),
    Row<HeadNormRopeAppendConstants, PickHeadNormRopeAppendF32>("head_norm_rope_append.f32", 5,
                                                                kDigest_head_norm_rope_append),
    Row<HeadNormRopeAppendConstants, PickHeadNormRopeAppendF16>("head_norm_rope_append.f16", 5,
                                                                kDigest_head_norm_rope_append),
    ShaderRow<AttentionSplitConstants>("attention_split2.f32.f32", 6),
    ShaderRow<AttentionSplitConstants>("attention_split4.f32.f32", 6),
    ShaderRow<AttentionSplitConstants>("attention_split8.f32.f32", 6),
    ShaderRow<AttentionSplitConstants>("attention_split2.f16.f32", 6),
    ShaderRow<AttentionSplitConstants>("attention_split4.f16.f32", 6),
    ShaderRow<AttentionSplitConstants>("attention_split8.f16.f32", 6),
    ShaderRow<MatMulConstants>("matmul_tile.f32", 3),
    ShaderRow<MatMulConstants>("matmul_tile.f16", 3),
    ShaderRow<MatMulConstants>("matmul_tile.bf16", 3),
    ShaderRow<MatMulConstants>("matmul_tile.q8_0", 3),
    ShaderRow<MatMulConstants>("matmul_tile.q4_0", 3),
    ShaderRow<MatMulConstants>("matmul_tile_add.f32", 4),
    ShaderRow<MatMulConstants>("matmul_tile_add.f16", 4),
    ShaderRow<MatMulConstants>("matmul_tile_add.bf16", 4),
    ShaderRow<MatMulConstants>("matmul_tile_add.q8_0", 4),
    ShaderRow<MatMulConstants>("matmul_tile_add.q4_0", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative.f32", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative.f16", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative.bf16", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative.q8_0", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative.q4_0", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative_add.f32", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_add.f16", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_add.bf16", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_add.q8_0", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_add.q4_0", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_small.f32", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative_small.f16", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative_small.bf16", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative_small.q8_0", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative_small.q4_0", 3),
    ShaderRow<MatMulConstants>("matmul_cooperative_small_add.f32", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_small_add.f16", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_small_add.bf16", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_small_add.q8_0", 4),
    ShaderRow<MatMulConstants>("matmul_cooperative_small_add.q4_0", 4),
    ShaderRow<MatMulByExpertConstants>("matmul_by_expert_cooperative.f32", 4),
    ShaderRow<MatMulByExpertConstants>("matmul_by_expert_cooperative.f16", 4),
    ShaderRow<MatMulByExpertConstants>("matmul_by_expert_cooperative.bf16", 4),
    ShaderRow<MatMulByExpertConstants>("matmul_by_expert_cooperative.q8_0", 4),
    ShaderRow<MatMulByExpertConstants>("matmul_by_expert_cooperative.q4_0", 4),
});
static_assert(kTable.size() == static_cast<size_t>(KernelIndex::kCount));

// The one form that a row's code has.
constexpr auto kCodes = [] {
  std::array<gpu::KernelCode, kTable.size()> codes;
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = {gpu::kCpuCodeFormat, &kTable[i].cpu, sizeof(gpu::CpuKernel)};
  }
  return codes;
}();

}  // namespace

std::span<const KernelRow> KernelTable() {
  return std::span(kTable).first(static_cast<size_t>(kFirstShaderAlone));
}
const KernelRow& RowOf(KernelIndex index) { return kTable[static_cast<size_t>(index)]; }

namespace {

Status RegisterSpirv(gpu::Device& device) {
  for (size_t i = 0; i < SpirvTable().size(); ++i) {
    const gpu::KernelDesc desc = SpirvDesc(i);
    ASSAY_TRY_WHILE(device.kernels().Add(desc), fmt::format("registering kernel {}", desc.name));
  }
  return {};
}

}  // namespace

Status RegisterKernels(gpu::Device& device) {
  if (TargetOf(device.info().code_format) == Target::kSpirv) return RegisterSpirv(device);
  if (const Result<Isa>& isa = ProcessIsa(); !isa) return Fail(isa.error());
  for (size_t i = 0; i < KernelTable().size(); ++i) {
    const KernelRow& row = kTable[i];
    ASSAY_TRY_WHILE(device.kernels().Add({.name = row.name,
                                          .workgroup = {1, 1, 1},
                                          .binding_count = row.binding_count,
                                          .constant_bytes = row.constant_bytes,
                                          .source_digest = row.source_digest,
                                          .code = std::span(&kCodes[i], 1)}),
                    fmt::format("registering kernel {}", row.name));
  }
  return {};
}

}  // namespace assay::kernels
