// down_by_expert_sum (down_by_expert_sum.h): workgroup (x, y) takes four rows, x * 4..., of token y.
// Each group of lanes multiplies them with the matrix of another expert; the products are added in
// the order of the experts.
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
#define ROWS 4
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"

#define GROUPS (THREADS / 32)
shared float products[GROUPS * 4];

void main() {
  const uint row = gl_WorkGroupID.x * 4u;
  const uint token = gl_WorkGroupID.y;
  // Of row `row` + the thread's number, in the first four threads.
  float sum = 0.0;
  for (uint base = 0u; base < c.used; base += GROUPS) {
    const uint j = base + Group();
    const uint pair = token * c.used + min(j, c.used - 1u);
    const uint id = ids[c.ids_at / 4u + pair];
    // All groups multiply, so that all come to the sums over lanes; what does not count is left out
    // afterwards.
    const bool known = id < c.experts;
    float dots[4];
    Dots(c.weights_at + (known ? id : 0u) * c.rows * RowBytes(c.cols), row, c.rows - 1u, c.cols,
         uint[1](c.x_at / 4u + pair * c.cols), dots);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      if (Lane() == i) products[Group() * 4u + i] = known ? dots[i] : 0.0;
    }
    barrier();
    if (Thread() < 4u) {
      const uint end = min(c.used - base, uint(GROUPS));
      for (uint g = 0u; g < end; ++g) {
        const float weight = expert_weights[c.expert_weights_at / 4u + token * c.used + base + g];
        const float product = products[g * 4u + Thread()];
        sum = base + g == 0u ? Mul(weight, product) : Fma(weight, product, sum);
      }
    }
    barrier();
  }
  if (Thread() < 4u && row + Thread() < c.rows) {
    const uint place = token * c.rows + row + Thread();
    out_values[c.out_at / 4u + place] = Add(sum, residual[c.residual_at / 4u + place]);
  }
}
