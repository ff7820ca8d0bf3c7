// weighted_sum, and with RESIDUAL weighted_sum_add (weighted_sum.h): workgroup (x, y) takes columns
// x * cols_per_group... of token y.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/common.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint used;
  uint cols_per_group;
  uint add_residual;
  uint x_at;
  uint weights_at;
  uint out_at;
#ifdef RESIDUAL
  uint residual_at;
#endif
}
c;

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weights { float weights[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float out_values[]; };
#ifdef RESIDUAL
layout(std430, set = 0, binding = 3) readonly buffer Residual { float residual[]; };
#endif

void main() {
  const uint token = gl_WorkGroupID.y;
  const uint begin = gl_WorkGroupID.x * c.cols_per_group;
  const uint end = min(c.cols, begin + c.cols_per_group);
  const uint weights_begin = c.weights_at / 4u + token * c.used;
  for (uint i = begin + Thread(); i < end; i += THREADS) {
    const uint x_begin = c.x_at / 4u + token * c.used * c.cols + i;
    float sum = Mul(weights[weights_begin], x[x_begin]);
    for (uint j = 1u; j < c.used; ++j) {
      sum = Fma(weights[weights_begin + j], x[x_begin + j * c.cols], sum);
    }
#ifdef RESIDUAL
    sum = Add(sum, residual[c.residual_at / 4u + token * c.cols + i]);
#endif
    out_values[c.out_at / 4u + token * c.cols + i] = sum;
  }
}
