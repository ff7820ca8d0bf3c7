// One step of a product: a lane's columns of a row by those of x.
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
#ifdef TYPE_Q4_0
#define VALUES Eight
// What a lane takes of x in a step.
struct Part {
  vec4 low;
  vec4 high;
  float less;
};
Part Placed(vec4 low, vec4 high) {
  Part part;
  part.low = low;
  part.high = vec4(Mul(high.x, kHighPlace), Mul(high.y, kHighPlace), Mul(high.z, kHighPlace),
                   Mul(high.w, kHighPlace));
  const float sum = Add(Add(Add(low.x, low.y), Add(low.z, low.w)),
                        Add(Add(high.x, high.y), Add(high.z, high.w)));
  part.less = Mul(sum, kLess);
  return part;
}
float AddStep(Eight values, float scale, Part x, float sum) {
  float block = Fma(values.low.x, x.low.x, x.less);
  block = Fma(values.low.y, x.low.y, block);
  block = Fma(values.low.z, x.low.z, block);
  block = Fma(values.low.w, x.low.w, block);
  block = Fma(values.high.x, x.high.x, block);
  block = Fma(values.high.y, x.high.y, block);
  block = Fma(values.high.z, x.high.z, block);
  block = Fma(values.high.w, x.high.w, block);
  return Fma(scale, block, sum);
}
// What the sum of a lane's steps stands for.
float LaneValue(float sum) { return Mul(sum, kUnits); }
#else
#define VALUES vec4
#define Part vec4
#ifdef QUANTISED
vec4 Placed(vec4 x) {
  return vec4(Mul(x.x, kPlaces.x), Mul(x.y, kPlaces.y), Mul(x.z, kPlaces.z), Mul(x.w, kPlaces.w));
}
float AddStep(vec4 values, float scale, vec4 x, float sum) {
  float block = Mul(values.x, x.x);
  block = Fma(values.y, x.y, block);
  block = Fma(values.z, x.z, block);
  block = Fma(values.w, x.w, block);
  return Fma(scale, block, sum);
}
#else
vec4 Placed(vec4 x) { return x; }
float AddStep(vec4 values, float scale, vec4 x, float sum) {
  sum = Fma(values.x, x.x, sum);
  sum = Fma(values.y, x.y, sum);
  sum = Fma(values.z, x.z, sum);
  return Fma(values.w, x.w, sum);
}
#endif
float LaneValue(float sum) { return sum; }
#endif

#endif
