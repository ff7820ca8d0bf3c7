// head_norm_rope (head_norm_rope.h): workgroup (x, y) takes four heads of row x. NORM, WEIGHT, ROPE:
// what the op does.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 128
#include "kernels/vulkan/norm.glsl"
#include "kernels/vulkan/reduce.glsl"
#ifdef ROPE
#include "kernels/vulkan/rotation.glsl"
#endif

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint head_dim;
  uint first_position;
  float eps;
  float base;
  uint has_norm;
  uint has_weight;
  uint has_rope;
  uint x_at;
#ifdef WEIGHT
  uint weight_at;
#endif
}
c;

layout(std430, set = 0, binding = 0) buffer X { float x[]; };
#ifdef WEIGHT
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
#define HEAD_WEIGHT weight
#endif

#define HEAD_X x
uint HeadBegin() {
  return c.x_at / 4u + gl_WorkGroupID.x * c.cols + (gl_WorkGroupID.y * 4u + Group()) * c.head_dim;
}
void HeadOut(uint i, float value) { x[HeadBegin() + i] = value; }
#include "kernels/vulkan/head.glsl"

void main() {
  const bool live = (gl_WorkGroupID.y * 4u + Group()) * c.head_dim < c.cols;
#ifdef WEIGHT
  const uint weight_begin = c.weight_at / 4u;
#else
  const uint weight_begin = 0u;
#endif
  Head(live, HeadBegin(), weight_begin, c.head_dim, c.first_position + gl_WorkGroupID.x, c.eps,
       c.base);
}
