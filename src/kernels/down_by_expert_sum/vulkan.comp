// down_by_expert_sum (down_by_expert_sum.h): workgroup (x, y) takes rows x * rows_per_group... of
// token y, and goes through the token's experts in their order.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/dots_step.glsl"
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint rows;
  uint cols;
  uint experts;
  uint used;
  uint rows_per_group;
  uint weights_at;
  uint ids_at;
  uint x_at;
  uint expert_weights_at;
  uint out_at;
  uint residual_at;
}
c;

#define M(name) weights_##name
#define MATRIX_BINDING 0
#include "kernels/vulkan/matrix.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Ids { uint ids[]; };
layout(std430, set = 0, binding = 2) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 2) readonly buffer XInFours { vec4 x4[]; };
layout(std430, set = 0, binding = 3) readonly buffer ExpertWeights { float expert_weights[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Out { float out_values[]; };
layout(std430, set = 0, binding = 5) readonly buffer Residual { float residual[]; };

#define X x
#define X4 x4
#define DOTS Dots
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"

void main() {
  const uint row = gl_WorkGroupID.x * c.rows_per_group + Group() * 2u;
  const uint token = gl_WorkGroupID.y;
  float sums[2] = float[2](0.0, 0.0);
  for (uint j = 0u; j < c.used; ++j) {
    const uint pair = token * c.used + j;
    const uint id = ids[c.ids_at / 4u + pair];
    const float weight = expert_weights[c.expert_weights_at / 4u + pair];
    float products[2] = float[2](0.0, 0.0);
    if (id < c.experts) {
      Dots(c.weights_at + id * c.rows * RowBytes(c.cols), row, c.rows - 1u, c.cols,
           c.x_at / 4u + pair * c.cols, 0u, products);
    }
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      sums[i] = j == 0u ? Mul(weight, products[i]) : Fma(weight, products[i], sums[i]);
    }
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    if (Lane() == i && row + i < c.rows) {
      const uint place = token * c.rows + row + i;
      out_values[c.out_at / 4u + place] = Add(sums[i], residual[c.residual_at / 4u + place]);
    }
  }
}
