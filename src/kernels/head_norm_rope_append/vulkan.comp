// head_norm_rope_append (head_norm_rope_append.h): workgroup (x, y) takes four heads of row x. HALF:
// the caches are f16.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 128
#include "kernels/vulkan/cache_rows.glsl"
#include "kernels/vulkan/norm.glsl"
#include "kernels/vulkan/reduce.glsl"
#include "kernels/vulkan/rotation.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint head_dim;
  uint first_position;
  float eps;
  float base;
  uint has_norm;
  uint has_weight;
  uint has_rope;
  uint k_at;
  uint weight_at;
  uint v_at;
  uint k_rows_at;
  uint v_rows_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer K { float k[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 2) readonly buffer V { float v[]; };
layout(std430, set = 0, binding = 3) writeonly buffer KRows { CACHED k_rows[]; };
layout(std430, set = 0, binding = 4) writeonly buffer VRows { CACHED v_rows[]; };

#define NORM
#define ROPE
#define HEAD_X k
#define HEAD_WEIGHT weight
uint HeadBegin() {
  return gl_WorkGroupID.x * c.cols + (gl_WorkGroupID.y * 4u + Group()) * c.head_dim;
}
void HeadOut(uint i, float value) {
  k_rows[c.k_rows_at / kCachedBytes + HeadBegin() + i] = ToCached(value);
}
#include "kernels/vulkan/head.glsl"

void main() {
  const bool live = (gl_WorkGroupID.y * 4u + Group()) * c.head_dim < c.cols;
  const uint begin = HeadBegin();
  if (live) {
    for (uint i = Lane(); i < c.head_dim; i += 32u) {
      v_rows[c.v_rows_at / kCachedBytes + begin + i] = ToCached(v[c.v_at / 4u + begin + i]);
    }
  }
  Head(live, c.k_at / 4u + begin, c.weight_at / 4u, c.head_dim, c.first_position + gl_WorkGroupID.x,
       c.eps, c.base);
}
