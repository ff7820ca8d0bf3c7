// What every kernel has: THREADS invocations in a workgroup, split into groups of 32 lanes, and
// arithmetic of which each step is rounded as it is written.
#ifndef ASSAY_KERNELS_VULKAN_COMMON_GLSL
#define ASSAY_KERNELS_VULKAN_COMMON_GLSL

#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(local_size_x = THREADS) in;

// The invocation's number, by which a subgroup holds consecutive ones.
uint Thread() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }
uint Lane() { return Thread() & 31u; }
uint Group() { return Thread() >> 5; }

// A multiply and an add fuse where the source says so and nowhere else. A loop marked [[unroll]] must
// hold no product that is added by itself: glslc unrolls it and forgets in the copies that the two
// are not to be fused.
float Add(float a, float b) {
  precise float r = a + b;
  return r;
}
float Sub(float a, float b) {
  precise float r = a - b;
  return r;
}
float Mul(float a, float b) {
  precise float r = a * b;
  return r;
}
// Rounded once where the device can, which every NVIDIA device does; for sums of many products,
// whose bits it makes the same wherever the same products are added.
float Fma(float a, float b, float c) {
  precise float r = fma(a, b, c);
  return r;
}
// Rounded twice on every device.
float MulAdd(float a, float b, float c) { return Add(Mul(a, b), c); }

float Infinity() { return uintBitsToFloat(0x7F800000u); }
float NaN() { return uintBitsToFloat(0x7FC00000u); }

// By its bits: a driver may take comparisons for those of numbers.
bool IsNaN(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// e^x by the steps of simd/math-inl.h: 0 below the smallest normal float's logarithm, infinity
// above the largest float's; NaN stays.
float Exp(float x) {
  const float high = 88.72283;
  const float low = -87.33654;
  if (IsNaN(x)) return x;
  if (x > high) return Infinity();
  if (x < low) return 0.0;
  const float n = roundEven(Mul(x, 1.44269504));
  // The first product is exact.
  float r = Sub(x, Mul(n, 0.693359375));
  r = Sub(r, Mul(n, -2.12194440e-4));
  float p = 1.0 / 5040.0;
  p = MulAdd(p, r, 1.0 / 720.0);
  p = MulAdd(p, r, 1.0 / 120.0);
  p = MulAdd(p, r, 1.0 / 24.0);
  p = MulAdd(p, r, 1.0 / 6.0);
  p = MulAdd(p, r, 0.5);
  p = MulAdd(Mul(p, r), r, r);
  p = Add(p, 1.0);
  // 2^n in two factors: n = 128 has no float of its own.
  const int whole = int(n);
  const int half_n = whole >> 1;
  const float first = uintBitsToFloat(uint(half_n + 127) << 23);
  const float second = uintBitsToFloat(uint(whole - half_n + 127) << 23);
  return Mul(Mul(p, first), second);
}

// x / (1 + e^-x).
float Silu(float x) {
  precise float r = x / Add(1.0, Exp(-x));
  return r;
}

// Exact, subnormal numbers included.
float HalfToFloat(uint h) {
  const uint magnitude = h & 0x7FFFu;
  const uint sign = (h & 0x8000u) << 16;
  if (magnitude >= 0x7C00u) return uintBitsToFloat(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  if (magnitude < 0x400u) {
    return uintBitsToFloat(sign | floatBitsToUint(float(magnitude) * 5.9604644775390625e-8));
  }
  return uintBitsToFloat(sign | ((magnitude << 13) + 0x38000000u));
}

// To the nearest, ties to even.
uint FloatToHalf(float value) {
  const uint bits = floatBitsToUint(value);
  const uint sign = bits >> 16 & 0x8000u;
  const uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u | (magnitude >> 13 & 0x1FFu);
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
  if (magnitude < 0x38800000u) {
    // The addition leaves the rounded subnormal in the low bits of the sum.
    return sign | (floatBitsToUint(Add(uintBitsToFloat(magnitude), 0.5)) - 0x3F000000u);
  }
  const uint odd = magnitude >> 13 & 1u;
  return sign | (magnitude - 0x38000000u + 0xFFFu + odd) >> 13;
}

#endif
