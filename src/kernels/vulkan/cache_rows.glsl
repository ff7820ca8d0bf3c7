// What a cache holds: CACHED, of kCachedBytes; f16 with HALF, else f32.
#ifndef ASSAY_KERNELS_VULKAN_CACHE_ROWS_GLSL
#define ASSAY_KERNELS_VULKAN_CACHE_ROWS_GLSL

#include "kernels/vulkan/common.glsl"

#ifdef HALF
#extension GL_EXT_shader_16bit_storage : require
#define CACHED uint16_t
const uint kCachedBytes = 2u;
CACHED ToCached(float value) { return CACHED(FloatToHalf(value)); }
#else
#define CACHED float
const uint kCachedBytes = 4u;
CACHED ToCached(float value) { return value; }
#endif

#endif
