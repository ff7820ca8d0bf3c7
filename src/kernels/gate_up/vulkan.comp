// gate_up, and with EXPERTS gate_up_by_expert (gate_up.h): workgroup (x, y) takes rows
// x * rows_per_group... of pair y.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/dots_step.glsl"
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint rows;
  uint cols;
  uint experts;
  uint fan;
  uint rows_per_group;
  uint out_q8;
  uint gate_at;
#ifdef EXPERTS
  uint ids_at;
#endif
  uint up_at;
  uint x_at;
  uint out_at;
}
c;

#ifdef EXPERTS
layout(std430, set = 0, binding = 1) readonly buffer Ids { uint ids[]; };
#define UP_BINDING 2
#define X_BINDING 3
#define OUT_BINDING 4
#else
#define UP_BINDING 1
#define X_BINDING 2
#define OUT_BINDING 3
#endif
layout(std430, set = 0, binding = X_BINDING) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = X_BINDING) readonly buffer XInFours { vec4 x4[]; };
layout(std430, set = 0, binding = OUT_BINDING) writeonly buffer Out { float out_values[]; };

#define X x
#define X4 x4
#define M(name) gate_##name
#define MATRIX_BINDING 0
#include "kernels/vulkan/matrix.glsl"
#define DOTS GateDots
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"
#undef M
#define M(name) up_##name
#define MATRIX_BINDING UP_BINDING
#include "kernels/vulkan/matrix.glsl"
#define DOTS UpDots
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"

void main() {
  const uint row = gl_WorkGroupID.x * c.rows_per_group + Group() * 2u;
  const uint pair = gl_WorkGroupID.y;
  uint matrix = 0u;
#ifdef EXPERTS
  const uint id = ids[c.ids_at / 4u + pair];
  const bool known = id < c.experts;
  matrix = id * c.rows * RowBytes(c.cols);
#else
  const bool known = true;
#endif
  float gate[2] = float[2](0.0, 0.0);
  float up[2] = float[2](0.0, 0.0);
  if (known) {
    const uint x_begin = c.x_at / 4u + pair / c.fan * c.cols;
    GateDots(c.gate_at + matrix, row, c.rows - 1u, c.cols, x_begin, 0u, gate);
    UpDots(c.up_at + matrix, row, c.rows - 1u, c.cols, x_begin, 0u, up);
  }
  const uint own = row + Lane();
  if (Lane() < 2u && own < c.rows) {
    const bool first = Lane() == 0u;
    out_values[c.out_at / 4u + pair * c.rows + own] =
        Mul(Silu(first ? gate[0] : gate[1]), first ? up[0] : up[1]);
  }
}
