// rms_norm (rms_norm.h): one workgroup a row.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/norm.glsl"
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  float eps;
  uint has_weight;
  uint x_at;
#ifdef WEIGHT
  uint weight_at;
#endif
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
#ifdef WEIGHT
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float out_values[]; };
#define NORM_WEIGHT weight
#else
layout(std430, set = 0, binding = 1) writeonly buffer Out { float out_values[]; };
#endif

#define NORM_X x
#define NORM_OUT out_values
#include "kernels/vulkan/norm_row.glsl"

void main() {
  const uint row = gl_WorkGroupID.x * c.cols;
#ifdef WEIGHT
  const uint weight_begin = c.weight_at / 4u;
#else
  const uint weight_begin = 0u;
#endif
  NormRow(c.x_at / 4u + row, weight_begin, c.out_at / 4u + row, c.cols, c.eps);
}
