// matmul (matmul.h): workgroup (x, y) takes rows y * rows_per_group... of token x, or with TILE of
// tokens x * tokens_per_group...; each group of lanes an eighth of the rows. The sums are the same.
// The tile's sums would cost the form for one token registers, and with them speed.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/dots_step.glsl"
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint rows;
  uint cols;
  uint tokens;
  uint rows_per_group;
  uint tokens_per_group;
  uint add_residual;
  uint weights_at;
  uint x_at;
  uint out_at;
#ifdef RESIDUAL
  uint residual_at;
#endif
}
c;

#define M(name) weights_##name
#define MATRIX_BINDING 0
#include "kernels/vulkan/matrix.glsl"
layout(std430, set = 0, binding = 1) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer XInFours { vec4 x4[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float out_values[]; };
#ifdef RESIDUAL
layout(std430, set = 0, binding = 3) readonly buffer Residual { float residual[]; };
#endif

#define X x
#define X4 x4
#if defined(TILE) || defined(TYPE_Q8_0)
#define STEPS_AT_ANY_BYTE
#endif
#ifdef TILE
#define DOTS Dots4By4
#define ROWS 4
#define TOKENS 4
#include "kernels/vulkan/dots.glsl"
#else
#define DOTS Dots1By1
#define ROWS 1
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"
#define DOTS Dots2By1
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"
#define DOTS Dots4By1
#define ROWS 4
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"
#endif

void Store(uint row, uint token, float value) {
  if (row >= c.rows || token >= c.tokens) return;
  const uint i = token * c.rows + row;
#ifdef RESIDUAL
  value = Add(value, residual[c.residual_at / 4u + i]);
#endif
  out_values[c.out_at / 4u + i] = value;
}

void main() {
  const uint rows_each = c.rows_per_group / (THREADS / 32);
  const uint row = gl_WorkGroupID.y * c.rows_per_group + Group() * rows_each;
  const uint token = gl_WorkGroupID.x * c.tokens_per_group;
  const uint last_row = c.rows - 1u;
#ifdef TILE
  const uint last = c.tokens - 1u;
  uint tokens_at[4];
  [[unroll]] for (uint t = 0u; t < 4u; ++t) {
    tokens_at[t] = c.x_at / 4u + min(token + t, last) * c.cols;
  }
  float sums[16];
  Dots4By4(c.weights_at, row, last_row, c.cols, tokens_at, sums);
  [[unroll]] for (uint i = 0u; i < 16u; ++i) {
    if (Lane() == i) Store(row + i / 4u, token + i % 4u, sums[i]);
  }
#else
  const uint x_begin[1] = uint[1](c.x_at / 4u + token * c.cols);
  if (rows_each == 4u) {
    float sums[4];
    Dots4By1(c.weights_at, row, last_row, c.cols, x_begin, sums);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      if (Lane() == i) Store(row + i, token, sums[i]);
    }
  } else if (rows_each == 1u) {
    float sums[1];
    Dots1By1(c.weights_at, row, last_row, c.cols, x_begin, sums);
    if (Lane() == 0u) Store(row, token, sums[0]);
  } else {
    float sums[2];
    Dots2By1(c.weights_at, row, last_row, c.cols, x_begin, sums);
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      if (Lane() == i) Store(row + i, token, sums[i]);
    }
  }
#endif
}
