#include <type_traits>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/tile.h"
#include "kernels/matmul/workgroup.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/cpu_quant.cc"
// Must come after HWY_TARGET_INCLUDE and ahead of highway.h.
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/pick.h"
#include "kernels/simd/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace assay::kernels::HWY_NAMESPACE {
#define ASSAY_VNNI 0
#include "kernels/matmul/quant_tile.inc"
#undef ASSAY_VNNI
}  // namespace assay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_TARGET == HWY_AVX3
ASSAY_BEFORE_VNNI()
namespace assay::kernels::N_AVX3_VNNI {
using N_AVX3::Add16;
using N_AVX3::D4;
using N_AVX3::DF;
using N_AVX3::DI;
using N_AVX3::F4;
using N_AVX3::FormatF16;
using N_AVX3::kLanes;
using N_AVX3::kVecs;
using N_AVX3::Load16;
using N_AVX3::Set16;
using N_AVX3::Store16;
using N_AVX3::V16;
using N_AVX3::VF;
using N_AVX3::VI;
#define ASSAY_VNNI 1
#include "kernels/matmul/quant_tile.inc"
#undef ASSAY_VNNI
}  // namespace assay::kernels::N_AVX3_VNNI
ASSAY_AFTER_VNNI()
#endif

#if HWY_ONCE
namespace assay::kernels {

#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX3)
#define ASSAY_QUANT_TILE_VNNI(TILE) &N_AVX3_VNNI::TILE
#elif HWY_ARCH_X86
#define ASSAY_QUANT_TILE_VNNI(TILE) HWY_CHOOSE_AVX3(TILE)  // Null: AVX3 is not compiled.
#else
#define ASSAY_QUANT_TILE_VNNI(TILE)
#endif

ASSAY_PICK_TILE_VNNI(PickMatMulQ8_0, DType::kQ8_0, MatMulWorkgroup, TileQ8_0,
                     ASSAY_QUANT_TILE_VNNI(TileQ8_0));
ASSAY_PICK_TILE_VNNI(PickMatMulQ4_0, DType::kQ4_0, MatMulWorkgroup, TileQ4_0,
                     ASSAY_QUANT_TILE_VNNI(TileQ4_0));
ASSAY_PICK_TILE_VNNI(PickMatMulByExpertQ8_0, DType::kQ8_0, MatMulByExpertWorkgroup, TileQ8_0,
                     ASSAY_QUANT_TILE_VNNI(TileQ8_0));
ASSAY_PICK_TILE_VNNI(PickMatMulByExpertQ4_0, DType::kQ4_0, MatMulByExpertWorkgroup, TileQ4_0,
                     ASSAY_QUANT_TILE_VNNI(TileQ4_0));

}  // namespace assay::kernels
#endif  // HWY_ONCE
