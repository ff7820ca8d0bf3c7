// The table of all kernels (kernels.cc): what is registered with a device, and where its code is.
#ifndef ASSAY_KERNELS_KERNEL_TABLE_H_
#define ASSAY_KERNELS_KERNEL_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "gpu/cpu/cpu_kernel.h"
#include "kernels/simd/isa.h"

namespace assay::kernels {

// In the order of the table. The weight types of one op follow each other in the order F32, F16,
// BF16, Q8_0, Q4_0.
enum class KernelIndex : uint8_t {
  kEmbeddingF32,
  kEmbeddingF16,
  kEmbeddingBF16,
  kEmbeddingQ8_0,
  kEmbeddingQ4_0,
  kRmsNormF32,
  kRmsNormQ8,
  kRmsNormPlainF32,
  kRmsNormPlainQ8,
  kQuantizeF32,
  kQuantizeQ8,
  kMatMulF32,
  kMatMulF16,
  kMatMulBF16,
  kMatMulQ8_0,
  kMatMulQ4_0,
  kMatMulAddF32,
  kMatMulAddF16,
  kMatMulAddBF16,
  kMatMulAddQ8_0,
  kMatMulAddQ4_0,
  kMatMulByExpertF32,
  kMatMulByExpertF16,
  kMatMulByExpertBF16,
  kMatMulByExpertQ8_0,
  kMatMulByExpertQ4_0,
  kHeadNorm,
  kHeadNormPlain,
  kHeadNormRope,
  kHeadNormRopePlain,
  kRope,
  kKvAppendF32,
  kKvAppendF16,
  kAttentionF32ToF32,
  kAttentionF32ToQ8,
  kAttentionF16ToF32,
  kAttentionF16ToQ8,
  kSiluMulF32,
  kSiluMulQ8,
  kAdd,
  kMul,
  kRoute,
  kWeightedSum,
  kWeightedSumAdd,
  kArgMax,
  kGateUpF32,
  kGateUpF16,
  kGateUpBF16,
  kGateUpQ8_0,
  kGateUpQ4_0,
  kGateUpRoundedF32,
  kGateUpRoundedF16,
  kGateUpRoundedBF16,
  kGateUpRoundedQ8_0,
  kGateUpRoundedQ4_0,
  kGateUpByExpertF32,
  kGateUpByExpertF16,
  kGateUpByExpertBF16,
  kGateUpByExpertQ8_0,
  kGateUpByExpertQ4_0,
  kGateUpByExpertRoundedF32,
  kGateUpByExpertRoundedF16,
  kGateUpByExpertRoundedBF16,
  kGateUpByExpertRoundedQ8_0,
  kGateUpByExpertRoundedQ4_0,
  kDownByExpertSumF32,
  kDownByExpertSumF16,
  kDownByExpertSumBF16,
  kDownByExpertSumQ8_0,
  kDownByExpertSumQ4_0,
  kNormRoute,
  kHeadNormRopeAppendF32,
  kHeadNormRopeAppendF16,
  // From here on shaders alone, with no code for the CPU.
  kAttentionSplit2F32,
  kAttentionSplit4F32,
  kAttentionSplit8F32,
  kAttentionSplit2F16,
  kAttentionSplit4F16,
  kAttentionSplit8F16,
  kMatMulTileF32,
  kMatMulTileF16,
  kMatMulTileBF16,
  kMatMulTileQ8_0,
  kMatMulTileQ4_0,
  kMatMulTileAddF32,
  kMatMulTileAddF16,
  kMatMulTileAddBF16,
  kMatMulTileAddQ8_0,
  kMatMulTileAddQ4_0,
  kMatMulCooperativeF32,
  kMatMulCooperativeF16,
  kMatMulCooperativeBF16,
  kMatMulCooperativeQ8_0,
  kMatMulCooperativeQ4_0,
  kMatMulCooperativeAddF32,
  kMatMulCooperativeAddF16,
  kMatMulCooperativeAddBF16,
  kMatMulCooperativeAddQ8_0,
  kMatMulCooperativeAddQ4_0,
  kMatMulCooperativeSmallF32,
  kMatMulCooperativeSmallF16,
  kMatMulCooperativeSmallBF16,
  kMatMulCooperativeSmallQ8_0,
  kMatMulCooperativeSmallQ4_0,
  kMatMulCooperativeSmallAddF32,
  kMatMulCooperativeSmallAddF16,
  kMatMulCooperativeSmallAddBF16,
  kMatMulCooperativeSmallAddQ8_0,
  kMatMulCooperativeSmallAddQ4_0,
  kMatMulByExpertCooperativeF32,
  kMatMulByExpertCooperativeF16,
  kMatMulByExpertCooperativeBF16,
  kMatMulByExpertCooperativeQ8_0,
  kMatMulByExpertCooperativeQ4_0,
  kCount,
};
inline constexpr auto kFirstShaderAlone = KernelIndex::kAttentionSplit2F32;

struct KernelRow {
  std::string_view name;  // Shown in the trace.
  uint32_t binding_count = 0;
  uint32_t constant_bytes = 0;
  // The code for one instruction set; null where this build has none.
  gpu::CpuWorkgroupFn (*pick)(Isa isa) = nullptr;
  // What the cpu backend is given.
  gpu::CpuKernel cpu;
  // Of the op's sources, the shared ones, the compiler and its flags.
  std::string_view source_digest;
};

// The rows in front of kFirstShaderAlone.
std::span<const KernelRow> KernelTable();
// Of any kernel. A row of a shader alone has no code and no digest.
const KernelRow& RowOf(KernelIndex index);

}  // namespace assay::kernels

#endif  // ASSAY_KERNELS_KERNEL_TABLE_H_
