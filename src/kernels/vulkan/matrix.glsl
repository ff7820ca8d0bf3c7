// One matrix of weights: the buffer at binding MATRIX_BINDING as words of each size, and the values
// that a lane takes of a row. Included once for each matrix; M(name) makes the names of one.
layout(std430, set = 0, binding = MATRIX_BINDING) readonly buffer M(Words) { uint M(w32)[]; };
layout(std430, set = 0, binding = MATRIX_BINDING) readonly buffer M(Pairs) { uvec2 M(w64)[]; };
layout(std430, set = 0, binding = MATRIX_BINDING) readonly buffer M(Quads) { uvec4 M(w128)[]; };

#define WORDS M(w32)
#define WORD_NAME M(Word)
#define HALF_NAME M(Half)
#include "kernels/vulkan/words.glsl"

struct M(Chunk) {
#if defined(QUANTISED)
  uvec4 quants;
  uvec2 scales;
#elif defined(TYPE_F32)
  uvec4 words[CHUNK_STEPS];
#else
  uvec2 words[CHUNK_STEPS];
#endif
};

M(Chunk) M(LoadChunk)(uint row_at, uint cols, uint col, uint lane) {
  M(Chunk) c;
#if defined(QUANTISED)
  c.quants = M(w128)[(row_at + IntegerBytes(col)) / 16u + lane];
  c.scales = M(w64)[(row_at + IntegerBytes(cols) + col / 16u) / 8u + lane / LANES_OF_BLOCK];
#elif defined(TYPE_F32)
  [[unroll]] for (uint s = 0u; s < CHUNK_STEPS; ++s) {
    c.words[s] = M(w128)[(row_at + col * 4u) / 16u + s * 32u + lane];
  }
#else
  [[unroll]] for (uint s = 0u; s < CHUNK_STEPS; ++s) {
    c.words[s] = M(w64)[(row_at + col * 2u) / 8u + s * 32u + lane];
  }
#endif
  return c;
}

VALUES M(ChunkValues)(M(Chunk) c, uint s) {
#if defined(QUANTISED)
  return Values(c.quants[s]);
#else
  return Floats(c.words[s]);
#endif
}
float M(ChunkScale)(M(Chunk) c, uint s) {
#ifdef QUANTISED
  const vec2 pair = unpackHalf2x16(c.scales[s / 2u]);
  return (s & 1u) == 0u ? pair.x : pair.y;
#else
  return 1.0;
#endif
}

#ifdef QUANTISED
// A single step of a row that begins at a multiple of 4 bytes.
VALUES M(StepValues)(uint row_at, uint cols, uint step_col, uint lane) {
  return Values(M(w32)[(row_at + QuantAt(cols, step_col, lane)) / 4u]);
}
float M(StepScale)(uint row_at, uint cols, uint step_col, uint lane) {
  const uint at = row_at + ScaleAt(cols, step_col, lane);
  return unpackHalf2x16(M(w32)[at / 4u] >> (at & 2u) * 8u).x;
}
#endif

// The values of a lane in the step at `step_col`, at any alignment; zeros behind the last column.
VALUES M(AnyValues)(uint row_at, uint cols, uint step_col, uint lane) {
#if defined(QUANTISED)
  return Values(M(Word)(row_at + QuantAt(cols, step_col, lane)));
#else
  const uint col = step_col + 4u * lane;
  const uint left = cols - col;
#if defined(TYPE_F32)
  const uint from = row_at + col * 4u;
  uvec4 words = uvec4(M(Word)(from), 0u, 0u, 0u);
  if (left > 1u) words.y = M(Word)(from + 4u);
  if (left > 2u) words.z = M(Word)(from + 8u);
  if (left > 3u) words.w = M(Word)(from + 12u);
#else
  const uint from = row_at + col * 2u;
  uvec2 words = uvec2(0u);
  if (left > 3u) {
    words = uvec2(M(Word)(from), M(Word)(from + 4u));
  } else {
    words.x = M(Half)(from);
    if (left > 1u) words.x = M(Word)(from);
    if (left > 2u) words.y = M(Half)(from + 4u);
  }
#endif
  return Floats(words);
#endif
}
float M(AnyScale)(uint row_at, uint cols, uint step_col, uint lane) {
#ifdef QUANTISED
  return unpackHalf2x16(M(Half)(row_at + ScaleAt(cols, step_col, lane))).x;
#else
  return 1.0;
#endif
}

#undef MATRIX_BINDING
