// The root mean square of a row.
#ifndef ASSAY_KERNELS_VULKAN_NORM_GLSL
#define ASSAY_KERNELS_VULKAN_NORM_GLSL

#include "kernels/vulkan/common.glsl"

// 1 / sqrt(mean + eps) of `count` squares that add up to `squares`.
float NormFactor(float squares, uint count, float eps) {
  precise float mean = squares / float(count);
  precise float r = inversesqrt(Add(mean, eps));
  return r;
}

#endif
