// matmul_by_expert (matmul_by_expert.h): workgroup (x, y) takes rows x * rows_per_group... of pair y.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/dots_step.glsl"
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint rows;
  uint cols;
  uint experts;
  uint pairs;
  uint fan;
  uint rows_per_group;
  uint by_expert;
  uint weights_at;
  uint ids_at;
  uint x_at;
  uint out_at;
}
c;

#define M(name) weights_##name
#define MATRIX_BINDING 0
#include "kernels/vulkan/matrix.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Ids { uint ids[]; };
layout(std430, set = 0, binding = 2) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 2) readonly buffer XInFours { vec4 x4[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Out { float out_values[]; };

#define X x
#define X4 x4
#define DOTS Dots
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"

void main() {
  const uint row = gl_WorkGroupID.x * c.rows_per_group + Group() * 2u;
  const uint pair = gl_WorkGroupID.y;
  // As unsigned, a negative id is as large as one past the end.
  const uint id = ids[c.ids_at / 4u + pair];
  float sums[2] = float[2](0.0, 0.0);
  if (id < c.experts) {
    Dots(c.weights_at + id * c.rows * RowBytes(c.cols), row, c.rows - 1u, c.cols,
         c.x_at / 4u + pair / c.fan * c.cols, 0u, sums);
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    if (Lane() == i && row + i < c.rows) {
      out_values[c.out_at / 4u + pair * c.rows + row + i] = sums[i];
    }
  }
}
