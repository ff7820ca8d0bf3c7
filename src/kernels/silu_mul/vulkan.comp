// silu_mul (silu_mul.h): workgroup (x, y) takes columns x * cols_per_group... of row y.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/common.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint cols_per_group;
  uint gate_at;
  uint up_at;
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer Gate { float gate[]; };
layout(std430, set = 0, binding = 1) readonly buffer Up { float up[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float out_values[]; };

void main() {
  const uint row = gl_WorkGroupID.y * c.cols;
  const uint begin = gl_WorkGroupID.x * c.cols_per_group;
  const uint end = min(c.cols, begin + c.cols_per_group);
  for (uint i = begin + Thread(); i < end; i += THREADS) {
    out_values[c.out_at / 4u + row + i] =
        Mul(Silu(gate[c.gate_at / 4u + row + i]), up[c.up_at / 4u + row + i]);
  }
}
