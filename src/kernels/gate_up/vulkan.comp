// gate_up, and with EXPERTS gate_up_by_expert (gate_up.h): workgroup (x, y) takes eight rows of
// pair y. Half of the groups of lanes multiply with the gate, the others with the same rows of up.
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

#define LANES_APART
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

#define ROWS_OF_GROUPS 8
shared float up_products[ROWS_OF_GROUPS];

void main() {
  const bool gates = Group() < ROWS_OF_GROUPS / 2;
  const uint place = (Group() & (ROWS_OF_GROUPS / 2 - 1)) * 2u;
  const uint row = gl_WorkGroupID.x * c.rows_per_group + place;
  const uint pair = gl_WorkGroupID.y;
  uint matrix = 0u;
#ifdef EXPERTS
  const uint id = ids[c.ids_at / 4u + pair];
  const bool known = id < c.experts;
  matrix = id * c.rows * RowBytes(c.cols);
#else
  const bool known = true;
#endif
  float two[2] = float[2](0.0, 0.0);
  if (known) {
    const uint x_begin[1] = uint[1](c.x_at / 4u + pair / c.fan * c.cols);
    if (gates) {
      GateDots(c.gate_at + matrix, row, c.rows - 1u, c.cols, x_begin, two);
    } else {
      UpDots(c.up_at + matrix, row, c.rows - 1u, c.cols, x_begin, two);
    }
  }
  two[0] = LaneSum(two[0]);
  two[1] = LaneSum(two[1]);
  const float product = Lane() == 0u ? two[0] : two[1];
  if (!gates && Lane() < 2u) up_products[place + Lane()] = product;
  barrier();
  const uint own = row + Lane();
  if (gates && Lane() < 2u && own < c.rows) {
    out_values[c.out_at / 4u + pair * c.rows + own] =
        Mul(Silu(product), up_products[place + Lane()]);
  }
}
