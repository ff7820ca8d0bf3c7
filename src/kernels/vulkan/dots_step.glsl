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
// What a lane takes of x in a step.
struct Four {
  vec4 x;
#ifdef TYPE_Q4_0
  float less;
#endif
};
Four Placed(vec4 x) {
  Four four;
#ifdef QUANTISED
  four.x = vec4(Mul(x.x, kPlaces.x), Mul(x.y, kPlaces.y), Mul(x.z, kPlaces.z), Mul(x.w, kPlaces.w));
#else
  four.x = x;
#endif
#ifdef TYPE_Q4_0
  four.less = Mul(Add(Add(x.x, x.y), Add(x.z, x.w)), kLess);
#endif
  return four;
}
float AddStep(vec4 values, float scale, Four four, float sum) {
  const vec4 x = four.x;
#ifdef QUANTISED
#ifdef TYPE_Q4_0
  float block = Fma(values.x, x.x, four.less);
#else
  float block = Mul(values.x, x.x);
#endif
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
// What the sum of a lane's steps stands for.
float LaneValue(float sum) {
#ifdef TYPE_Q4_0
  return Mul(sum, kUnits);
#else
  return sum;
#endif
}

#endif
