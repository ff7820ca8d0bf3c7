// How a matrix lies in memory for this target (kernels/vulkan/layout.h), for the weight type that
// one of TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_Q8_0, TYPE_Q4_0 names.
//
// A row is taken in steps, of which a lane l has four columns, from 4 l on, and of Q4_0 eight: of a
// block of 32 columns, which four lanes share, four from 4 (l % 4) on and the four 16 behind them.
// Rows of quantised weights hold all their integers and then all their f16 scales. A run of
// CHUNK_STEPS steps is laid out so that a lane finds what it takes in one wide load.
#ifndef ASSAY_KERNELS_VULKAN_WEIGHTS_GLSL
#define ASSAY_KERNELS_VULKAN_WEIGHTS_GLSL

#include "kernels/vulkan/common.glsl"

#ifdef TYPE_Q4_0
#define STEP_COLS 256u
#else
#define STEP_COLS 128u
#endif
#if defined(TYPE_Q8_0)
#define QUANTISED
#define CHUNK_STEPS 4u
uint RowBytes(uint cols) { return cols / 32u * 34u; }
#elif defined(TYPE_Q4_0)
#define QUANTISED
#define CHUNK_STEPS 4u
uint RowBytes(uint cols) { return cols / 32u * 18u; }
#elif defined(TYPE_F32)
#define CHUNK_STEPS 2u
uint RowBytes(uint cols) { return cols * 4u; }
#else
#define CHUNK_STEPS 4u
uint RowBytes(uint cols) { return cols * 2u; }
#endif
const uint kChunkCols = CHUNK_STEPS * STEP_COLS;
// The columns that lie in chunks; single steps follow.
uint ChunkedCols(uint cols) { return cols / kChunkCols * kChunkCols; }

#ifdef QUANTISED
// A lane's integers of a step are a word, and its bytes of a chunk four.
#define STEP_BYTES 128u
#define LANES_OF_BLOCK (32u / (STEP_COLS / 32u))
uint IntegerBytes(uint cols) { return cols / 32u * (32u * STEP_BYTES / STEP_COLS); }
// Bytes from the row's start to the integers that a lane takes in the step at `col`.
uint QuantAt(uint cols, uint col, uint lane) {
  if (col >= ChunkedCols(cols)) return IntegerBytes(col) + 4u * lane;
  return IntegerBytes(col / kChunkCols * kChunkCols) + lane * 16u +
         (col / STEP_COLS & 3u) * 4u;
}
// And to the scale of its block.
uint ScaleAt(uint cols, uint col, uint lane) {
  const uint block = col >= ChunkedCols(cols)
                         ? col / 32u + lane / LANES_OF_BLOCK
                         : col / kChunkCols * (kChunkCols / 32u) + lane / LANES_OF_BLOCK * 4u +
                               (col / STEP_COLS & 3u);
  return IntegerBytes(cols) + block * 2u;
}

// Integers as floats, each times the inverse of its place. All steps are exact.
#ifdef TYPE_Q8_0
// What x is multiplied with so that the integers may stay where they lie in their word.
const vec4 kPlaces = vec4(1.0, 1.0 / 256.0, 1.0, 1.0 / 256.0);
// A small integer in the low bits of 2^23 is that many units above it, wherever it lies below
// bit 23.
// `bits`: four bytes, each the integer plus 128.
vec4 Values(uint bits) {
  const uint high = bits >> 16;
  return vec4(uintBitsToFloat(0x4B000000u | (bits & 0xFFu)) - 8388736.0,
              uintBitsToFloat(0x4B000000u | (bits & 0xFF00u)) - 8421376.0,
              uintBitsToFloat(0x4B000000u | (high & 0xFFu)) - 8388736.0,
              uintBitsToFloat(0x4B000000u | (high & 0xFF00u)) - 8421376.0);
}
// The integers themselves.
vec4 Integers(uint bits) { return Values(bits) * kPlaces; }
#else
// The eight columns of a lane: four in the low halves of its word's bytes, four in the high ones.
struct Eight {
  vec4 low;
  vec4 high;
};
// Which four of a step, in fours of columns, are in the low halves, and which in the high ones: in
// every second block they are exchanged, so that eight lanes that load the low ones of x load from
// all banks.
uint LowFour(uint lane) { return lane / 4u * 8u + (lane & 3u) + (lane & 4u); }
uint HighFour(uint lane) { return LowFour(lane) ^ 4u; }
// What x of the high halves is multiplied with.
const float kHighPlace = 1.0 / 16.0;
// `bits`: eight times four bits, each the integer plus 8. Four bits at the end of an f16 are a
// subnormal number of that many units of 2^-24, four places further on of 16 times as many: two
// integers take one step, and what is converted has no sign. So a sum of these begins with kLess
// times the sum of x, and is kUnits too small in the end.
Eight Values(uint bits) {
  const uint upper = bits >> 8;
  const vec2 a = unpackHalf2x16(bits & 0x000F000Fu);
  const vec2 b = unpackHalf2x16(upper & 0x000F000Fu);
  const vec2 c = unpackHalf2x16(bits & 0x00F000F0u);
  const vec2 d = unpackHalf2x16(upper & 0x00F000F0u);
  return Eight(vec4(a.x, b.x, a.y, b.y), vec4(c.x, d.x, c.y, d.y));
}
const float kUnits = 16777216.0;
const float kLess = -8.0 / kUnits;
// The integers of the low halves, or of the high ones.
vec4 Integers(uint bits, bool high) {
  const uint four = high ? bits >> 4 : bits;
  return vec4(four & 15u, four >> 8 & 15u, four >> 16 & 15u, four >> 24 & 15u) - 8.0;
}
#endif
#endif

#endif
