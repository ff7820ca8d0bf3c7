// kv_append (kv_append.h): one workgroup a row. HALF: the caches are f16.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/cache_rows.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint k_at;
  uint v_at;
  uint k_rows_at;
  uint v_rows_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer K { float k[]; };
layout(std430, set = 0, binding = 1) readonly buffer V { float v[]; };
layout(std430, set = 0, binding = 2) writeonly buffer KRows { CACHED k_rows[]; };
layout(std430, set = 0, binding = 3) writeonly buffer VRows { CACHED v_rows[]; };

void main() {
  const uint row = gl_WorkGroupID.x * c.cols;
  for (uint i = Thread(); i < c.cols; i += THREADS) {
    k_rows[c.k_rows_at / kCachedBytes + row + i] = ToCached(k[c.k_at / 4u + row + i]);
    v_rows[c.v_rows_at / kCachedBytes + row + i] = ToCached(v[c.v_at / 4u + row + i]);
  }
}
