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
  for (uint i = thread; i < c.cols; i += THREADS) {
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
