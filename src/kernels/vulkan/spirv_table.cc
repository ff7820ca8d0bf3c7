#include "kernels/vulkan/spirv_table.h"

#include <algorithm>
#include <array>

#include "kernels/shaders/all.h"
#include "kernels/source_digests.h"
#include "kernels/vulkan/grids.h"

namespace assay::kernels {
namespace {

// Of most shaders.
constexpr uint32_t kThreads = 256;
constexpr uint32_t kHeadThreads = 128;
constexpr uint32_t kRouteThreads = 32;
constexpr uint32_t kArgMaxThreads = 1024;

using enum KernelIndex;

// The five weight types of one op.
#define ASSAY_TYPED_ROWS_OF(THREADS, INDEX, SHADER, OP)                             \
  SpirvRow{INDEX##F32, THREADS, &SHADER##F32, kShaderDigest_##OP},                  \
      SpirvRow{INDEX##F16, THREADS, &SHADER##F16, kShaderDigest_##OP},              \
      SpirvRow{INDEX##BF16, THREADS, &SHADER##BF16, kShaderDigest_##OP},            \
      SpirvRow{INDEX##Q8_0, THREADS, &SHADER##Q8_0, kShaderDigest_##OP}, SpirvRow { \
    INDEX##Q4_0, THREADS, &SHADER##Q4_0, kShaderDigest_##OP                         \
  }
#define ASSAY_TYPED_ROWS(INDEX, SHADER, OP) ASSAY_TYPED_ROWS_OF(kThreads, INDEX, SHADER, OP)

constexpr auto kTable = std::to_array<SpirvRow>({
    ASSAY_TYPED_ROWS(kEmbedding, kShaderEmbedding, embedding),
    {kRmsNormF32, kThreads, &kShaderRmsNorm, kShaderDigest_rms_norm},
    {kRmsNormPlainF32, kThreads, &kShaderRmsNormPlain, kShaderDigest_rms_norm},
    {kQuantizeF32, kThreads, &kShaderQuantizeF32, kShaderDigest_quantize},
    {kQuantizeQ8, kThreads, &kShaderQuantizeQ8, kShaderDigest_quantize},
    ASSAY_TYPED_ROWS(kMatMul, kShaderMatMul, matmul),
    ASSAY_TYPED_ROWS(kMatMulAdd, kShaderMatMulAdd, matmul),
    ASSAY_TYPED_ROWS(kMatMulByExpert, kShaderMatMulByExpert, matmul_by_expert),
    {kHeadNorm, kHeadThreads, &kShaderHeadNorm, kShaderDigest_head_norm_rope},
    {kHeadNormPlain, kHeadThreads, &kShaderHeadNormPlain, kShaderDigest_head_norm_rope},
    {kHeadNormRope, kHeadThreads, &kShaderHeadNormRope, kShaderDigest_head_norm_rope},
    {kHeadNormRopePlain, kHeadThreads, &kShaderHeadNormRopePlain, kShaderDigest_head_norm_rope},
    {kRope, kHeadThreads, &kShaderRope, kShaderDigest_head_norm_rope},
    {kKvAppendF32, kThreads, &kShaderKvAppendF32, kShaderDigest_kv_append},
    {kKvAppendF16, kThreads, &kShaderKvAppendF16, kShaderDigest_kv_append},
    {kAttentionF32ToF32, kThreads, &kShaderAttentionF32, kShaderDigest_attention},
    {kAttentionF16ToF32, kThreads, &kShaderAttentionF16, kShaderDigest_attention},
    {kSiluMulF32, kThreads, &kShaderSiluMul, kShaderDigest_silu_mul},
    {kAdd, kThreads, &kShaderAdd, kShaderDigest_elementwise},
    {kMul, kThreads, &kShaderMul, kShaderDigest_elementwise},
    {kRoute, kRouteThreads, &kShaderRoute, kShaderDigest_route},
    {kWeightedSum, kThreads, &kShaderWeightedSum, kShaderDigest_weighted_sum},
    {kWeightedSumAdd, kThreads, &kShaderWeightedSumAdd, kShaderDigest_weighted_sum},
    {kArgMax, kArgMaxThreads, &kShaderArgMax, kShaderDigest_argmax},
    ASSAY_TYPED_ROWS(kGateUp, kShaderGateUp, gate_up),
    ASSAY_TYPED_ROWS(kGateUpByExpert, kShaderGateUpByExpert, gate_up),
    ASSAY_TYPED_ROWS(kDownByExpertSum, kShaderDownByExpertSum, down_by_expert_sum),
    {kNormRoute, kThreads, &kShaderNormRoute, kShaderDigest_norm_route},
    {kHeadNormRopeAppendF32, kHeadThreads, &kShaderHeadNormRopeAppendF32,
     kShaderDigest_head_norm_rope_append},
    {kHeadNormRopeAppendF16, kHeadThreads, &kShaderHeadNormRopeAppendF16,
     kShaderDigest_head_norm_rope_append},
    {kAttentionSplit2F32, kThreads, &kShaderAttentionSplit2F32, kShaderDigest_attention},
    {kAttentionSplit4F32, kThreads, &kShaderAttentionSplit4F32, kShaderDigest_attention},
    {kAttentionSplit8F32, kThreads, &kShaderAttentionSplit8F32, kShaderDigest_attention},
    {kAttentionSplit2F16, kThreads, &kShaderAttentionSplit2F16, kShaderDigest_attention},
    {kAttentionSplit4F16, kThreads, &kShaderAttentionSplit4F16, kShaderDigest_attention},
    {kAttentionSplit8F16, kThreads, &kShaderAttentionSplit8F16, kShaderDigest_attention},
    ASSAY_TYPED_ROWS(kMatMulTile, kShaderMatMulTile, matmul),
    ASSAY_TYPED_ROWS(kMatMulTileAdd, kShaderMatMulTileAdd, matmul),
    ASSAY_TYPED_ROWS(kMatMulCooperative, kShaderMatMulCooperative, matmul_cooperative),
    ASSAY_TYPED_ROWS(kMatMulCooperativeAdd, kShaderMatMulCooperativeAdd, matmul_cooperative),
    ASSAY_TYPED_ROWS(kMatMulCooperativeSmall, kShaderMatMulCooperativeSmall, matmul_cooperative),
    ASSAY_TYPED_ROWS(kMatMulCooperativeSmallAdd, kShaderMatMulCooperativeSmallAdd,
                     matmul_cooperative),
    ASSAY_TYPED_ROWS_OF(kSpirvCooperativeExpertThreads, kMatMulByExpertCooperative,
                        kShaderMatMulByExpertCooperative, matmul_cooperative),
});
#undef ASSAY_TYPED_ROWS
#undef ASSAY_TYPED_ROWS_OF

constexpr auto kCodes = [] {
  std::array<gpu::KernelCode, kTable.size()> codes;
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = {gpu::kSpirvCodeFormat, kTable[i].code, sizeof(gpu::SpirvKernel)};
  }
  return codes;
}();

constexpr auto kHas = [] {
  std::array<bool, static_cast<size_t>(kCount)> has{};
  for (const SpirvRow& row : kTable) has[static_cast<size_t>(row.kernel)] = true;
  return has;
}();

}  // namespace

std::span<const SpirvRow> SpirvTable() { return kTable; }

gpu::KernelDesc SpirvDesc(size_t index) {
  const SpirvRow& spirv = kTable[index];
  const KernelRow& row = RowOf(spirv.kernel);
  return {.name = row.name,
          .workgroup = {spirv.threads, 1, 1},
          .binding_count = row.binding_count,
          .constant_bytes = row.constant_bytes,
          .source_digest = spirv.source_digest,
          .code = std::span(&kCodes[index], 1)};
}

bool HasSpirv(KernelIndex kernel) { return kHas[static_cast<size_t>(kernel)]; }

}  // namespace assay::kernels
