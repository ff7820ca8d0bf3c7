// argmax (argmax.h): one workgroup a row.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 1024
#include "kernels/vulkan/common.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint x_at;
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Out { int out_columns[]; };

shared float values[THREADS];
// -1 where a value is none.
shared int columns[THREADS];

void main() {
  const uint thread = Thread();
  const uint begin = c.x_at / 4u + gl_WorkGroupID.x * c.cols;
  float best = 0.0;
  int column = -1;
  uint i = thread;
  // Several loads at once: one after another they would only wait.
  for (; i + 7u * THREADS < c.cols; i += 8u * THREADS) {
    float eight[8];
    [[unroll]] for (uint k = 0u; k < 8u; ++k) eight[k] = x[begin + i + k * THREADS];
    [[unroll]] for (uint k = 0u; k < 8u; ++k) {
      if (!IsNaN(eight[k]) && (column < 0 || eight[k] > best)) {
        best = eight[k];
        column = int(i + k * THREADS);
      }
    }
  }
  for (; i < c.cols; i += THREADS) {
    const float value = x[begin + i];
    if (!IsNaN(value) && (column < 0 || value > best)) {
      best = value;
      column = int(i);
    }
  }
  values[thread] = best;
  columns[thread] = column;
  barrier();
  for (uint n = THREADS / 2; n > 0u; n >>= 1) {
    if (thread < n && columns[thread + n] >= 0) {
      const float other = values[thread + n];
      const int other_column = columns[thread + n];
      if (columns[thread] < 0 || other > values[thread] ||
          (other == values[thread] && other_column < columns[thread])) {
        values[thread] = other;
        columns[thread] = other_column;
      }
    }
    barrier();
  }
  if (thread == 0u) out_columns[c.out_at / 4u + gl_WorkGroupID.x] = columns[0];
}
