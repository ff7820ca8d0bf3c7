// matmul_by_expert (matmul_by_expert.h): workgroup (x, y) takes rows x * rows_per_group... of pair y,
// or with by_expert of all pairs of expert y, four at once, which share the rows' loads.
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
#define DOTS Dots2By1
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"
#define DOTS Dots4By4
#define ROWS 4
#define TOKENS 4
#include "kernels/vulkan/dots.glsl"

#include "kernels/vulkan/pairs.glsl"

// The pairs are looked through in windows, of which each invocation takes a run.
#define WINDOW 4096
#define RUN (WINDOW / THREADS)
shared uint list[WINDOW];
shared uint counts[THREADS];
shared uint of_sixteen[THREADS / 16];

// Lists the pairs of the expert from `first` on, in their order, and says how many they are.
uint ListPairs(uint expert, uint first) {
  const uint begin = first + Thread() * RUN;
  uint found = 0u;
  for (uint i = 0u; i < RUN && begin + i < c.pairs; ++i) {
    if (IdOf(begin + i) == expert) found |= 1u << i;
  }
  counts[Thread()] = bitCount(found);
  barrier();
  const uint sixteen = Thread() / 16u;
  if (Thread() < THREADS / 16) {
    uint sum = 0u;
    for (uint i = 0u; i < 16u; ++i) sum += counts[Thread() * 16u + i];
    of_sixteen[Thread()] = sum;
  }
  barrier();
  uint at = 0u;
  uint all = 0u;
  for (uint i = 0u; i < THREADS / 16; ++i) {
    if (i < sixteen) at += of_sixteen[i];
    all += of_sixteen[i];
  }
  for (uint i = sixteen * 16u; i < Thread(); ++i) at += counts[i];
  for (uint i = 0u; i < RUN; ++i) {
    if ((found >> i & 1u) != 0u) list[at++] = begin + i;
  }
  barrier();
  return all;
}

uint MatrixAt(uint id) { return c.weights_at + id * c.rows * RowBytes(c.cols); }
void OnePair(uint pair) {
  const uint row = gl_WorkGroupID.x * c.rows_per_group + Group() * 2u;
  const uint id = IdOf(pair);
  float sums[2] = float[2](0.0, 0.0);
  if (id < c.experts) {
    Dots2By1(MatrixAt(id), row, c.rows - 1u, c.cols, uint[1](TokenAt(pair)), sums);
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    if (Lane() == i) StorePair(row + i, pair, sums[i]);
  }
}

void AllPairsOf(uint expert) {
  const uint row = gl_WorkGroupID.x * c.rows_per_group + Group() * 4u;
  if (expert == 0u) ClearUnknown();
  for (uint first = 0u; first < c.pairs; first += WINDOW) {
    const uint count = ListPairs(expert, first);
    for (uint n = 0u; n < count; n += 4u) {
      uint pairs[4];
      uint tokens_at[4];
      [[unroll]] for (uint t = 0u; t < 4u; ++t) {
        pairs[t] = list[min(n + t, count - 1u)];
        tokens_at[t] = TokenAt(pairs[t]);
      }
      float sums[16];
      Dots4By4(MatrixAt(expert), row, c.rows - 1u, c.cols, tokens_at, sums);
      [[unroll]] for (uint i = 0u; i < 16u; ++i) {
        if (Lane() == i && n + i % 4u < count) StorePair(row + i / 4u, pairs[i % 4u], sums[i]);
      }
    }
    barrier();
  }
}

void main() {
  if (c.by_expert != 0u) {
    AllPairsOf(gl_WorkGroupID.y);
  } else {
    OnePair(gl_WorkGroupID.y);
  }
}
