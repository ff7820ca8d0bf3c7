// One step of a product: four columns of a row by those of x.
#ifndef ASSAY_KERNELS_VULKAN_DOTS_STEP_GLSL
#define ASSAY_KERNELS_VULKAN_DOTS_STEP_GLSL

#include "kernels/vulkan/weights.glsl"

vec4 Floats(uvec4 words) { return uintBitsToFloat(words); }
vec4 Floats(uvec2 words) {
#ifdef TYPE_BF16
  return uintBitsToFloat(
      uvec4(words.x << 16, words.x & 0xFFFF0000u, words.y << 16, words.y & 0xFFFF0000u));
#else
  return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
#endif
}
// Quantised: x has been multiplied with the values' places.
float AddStep(vec4 values, float scale, vec4 x, float sum) {
#ifdef QUANTISED
  float block = Mul(values.x, x.x);
  block = Fma(values.y, x.y, block);
  block = Fma(values.z, x.z, block);
  block = Fma(values.w, x.w, block);
  return Fma(scale, block, sum);
#else
  sum = Fma(values.x, x.x, sum);
  sum = Fma(values.y, x.y, sum);
  sum = Fma(values.z, x.z, sum);
  return Fma(values.w, x.w, sum);
#endif
}
vec4 Placed(vec4 x) {
#ifdef QUANTISED
  return vec4(Mul(x.x, kPlaces.x), Mul(x.y, kPlaces.y), Mul(x.z, kPlaces.z), Mul(x.w, kPlaces.w));
#else
  return x;
#endif
}

#endif
