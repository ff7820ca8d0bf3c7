// Which Highway targets the kernels are compiled for. Every multi-target file includes this ahead
// of any Highway header.
//
// AVX3_DL stays off: Highway 1.0.3 compiles it with AVX-VNNI but without AVX512-VNNI, so that a
// compiler may emit the VEX form that processors with AVX-512 alone do not have. Files that want
// VNNI compile their AVX3 code a second time, inside ASSAY_BEFORE_VNNI / ASSAY_AFTER_VNNI.
#ifndef ASSAY_KERNELS_SIMD_TARGETS_H_
#define ASSAY_KERNELS_SIMD_TARGETS_H_

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#define ASSAY_BEFORE_VNNI() HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512vnni")
#define ASSAY_AFTER_VNNI() HWY_POP_ATTRIBUTES

#endif  // ASSAY_KERNELS_SIMD_TARGETS_H_
