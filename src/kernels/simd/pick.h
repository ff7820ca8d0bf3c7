// Turns a function that exists once a target into one that takes the Isa. Included after Highway,
// and used where HWY_ONCE holds, inside namespace assay::kernels.
#ifndef ASSAY_KERNELS_SIMD_PICK_H_
#define ASSAY_KERNELS_SIMD_PICK_H_

#include "gpu/cpu/cpu_kernel.h"
#include "kernels/simd/isa.h"

// ASSAY_PICK(PickAdd, Add) defines `gpu::CpuWorkgroupFn PickAdd(Isa)`, which gives the variant of
// Add for an Isa (null where there is none). ASSAY_PICK_TILE(PickMatMul, TYPE, MatMulWorkgroup,
// Tile) gives the instance MatMulWorkgroup<TYPE, &Tile's variant>; _VNNI names Tile's fourth
// variant.
#if HWY_ARCH_X86
#define ASSAY_PICK(NAME, FN)          \
  gpu::CpuWorkgroupFn NAME(Isa isa) { \
    switch (isa) {                    \
      case Isa::kSse4:                \
        return HWY_CHOOSE_SSE4(FN);   \
      case Isa::kAvx2:                \
        return HWY_CHOOSE_AVX2(FN);   \
      case Isa::kAvx3:                \
      case Isa::kAvx3Vnni:            \
        return HWY_CHOOSE_AVX3(FN);   \
      case Isa::kNeon:                \
        break;                        \
    }                                 \
    return nullptr;                   \
  }                                   \
  static_assert(true, "For requiring trailing semicolon")
#define ASSAY_PICK_TILE_VNNI(NAME, TYPE, WORKGROUP, TILE, TILE_VNNI) \
  gpu::CpuWorkgroupFn NAME(Isa isa) {                                \
    switch (isa) {                                                   \
      case Isa::kSse4:                                               \
        return &WORKGROUP<TYPE, HWY_CHOOSE_SSE4(TILE)>;              \
      case Isa::kAvx2:                                               \
        return &WORKGROUP<TYPE, HWY_CHOOSE_AVX2(TILE)>;              \
      case Isa::kAvx3:                                               \
        return &WORKGROUP<TYPE, HWY_CHOOSE_AVX3(TILE)>;              \
      case Isa::kAvx3Vnni:                                           \
        return &WORKGROUP<TYPE, TILE_VNNI>;                          \
      case Isa::kNeon:                                               \
        break;                                                       \
    }                                                                \
    return nullptr;                                                  \
  }                                                                  \
  static_assert(true, "For requiring trailing semicolon")
#define ASSAY_PICK_TILE(NAME, TYPE, WORKGROUP, TILE) \
  ASSAY_PICK_TILE_VNNI(NAME, TYPE, WORKGROUP, TILE, HWY_CHOOSE_AVX3(TILE))
#else
#define ASSAY_PICK(NAME, FN)                                       \
  gpu::CpuWorkgroupFn NAME(Isa isa) {                              \
    return isa == Isa::kNeon ? &HWY_STATIC_DISPATCH(FN) : nullptr; \
  }                                                                \
  static_assert(true, "For requiring trailing semicolon")
#define ASSAY_PICK_TILE_VNNI(NAME, TYPE, WORKGROUP, TILE, TILE_VNNI)                   \
  gpu::CpuWorkgroupFn NAME(Isa isa) {                                                  \
    return isa == Isa::kNeon ? &WORKGROUP<TYPE, &HWY_STATIC_DISPATCH(TILE)> : nullptr; \
  }                                                                                    \
  static_assert(true, "For requiring trailing semicolon")
#define ASSAY_PICK_TILE(NAME, TYPE, WORKGROUP, TILE) \
  ASSAY_PICK_TILE_VNNI(NAME, TYPE, WORKGROUP, TILE, )
#endif

#endif  // ASSAY_KERNELS_SIMD_PICK_H_
