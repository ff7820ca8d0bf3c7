// add, and with MULTIPLY mul (elementwise.h).
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/common.glsl"

layout(push_constant, std430) uniform Constants {
  uint count;
  uint per_group;
  uint a_at;
  uint b_at;
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer A { float a[]; };
layout(std430, set = 0, binding = 1) readonly buffer B { float b[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float out_values[]; };

void main() {
  const uint begin = gl_WorkGroupID.x * c.per_group;
  const uint end = begin + min(c.count - begin, c.per_group);
  for (uint i = begin + Thread(); i < end; i += THREADS) {
    const float left = a[c.a_at / 4u + i];
    const float right = b[c.b_at / 4u + i];
#ifdef MULTIPLY
    out_values[c.out_at / 4u + i] = Mul(left, right);
#else
    out_values[c.out_at / 4u + i] = Add(left, right);
#endif
  }
}
