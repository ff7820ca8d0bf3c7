// How a matrix lies in memory for this target (kernels/vulkan/layout.h), for the weight type that
// one of TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_Q8_0, TYPE_Q4_0 names.
//
// A row is taken in steps of 128 columns; lane l takes columns 4 l to 4 l + 3 of each step. Rows of
// quantised weights hold all their integers and then all their f16 scales. A run of CHUNK_STEPS
// steps is laid out so that a lane finds what it takes in one wide load.
#ifndef ASSAY_KERNELS_VULKAN_WEIGHTS_GLSL
#define ASSAY_KERNELS_VULKAN_WEIGHTS_GLSL

#include "kernels/vulkan/common.glsl"

#if defined(TYPE_Q8_0)
#define QUANTISED
#define CHUNK_STEPS 4u
// What x is multiplied with so that the integers may stay where they lie in their word.
const vec4 kPlaces = vec4(1.0, 1.0 / 256.0, 1.0, 1.0 / 256.0);
uint RowBytes(uint cols) { return cols / 32u * 34u; }
#elif defined(TYPE_Q4_0)
#define QUANTISED
#define CHUNK_STEPS 8u
const vec4 kPlaces = vec4(1.0, 1.0 / 16.0, 1.0, 1.0 / 16.0);
uint RowBytes(uint cols) { return cols / 32u * 18u; }
#elif defined(TYPE_F32)
#define CHUNK_STEPS 2u
uint RowBytes(uint cols) { return cols * 4u; }
#else
#define CHUNK_STEPS 4u
uint RowBytes(uint cols) { return cols * 2u; }
#endif
const uint kChunkCols = CHUNK_STEPS * 128u;

#ifdef QUANTISED
// The columns that lie in chunks; in Q4_0 pairs of steps follow, and single steps are last.
uint ChunkedCols(uint cols) { return cols / kChunkCols * kChunkCols; }
uint PairedCols(uint cols) { return cols & ~255u; }

// Four integers as floats, each times the inverse of its place. All steps are exact.
#ifdef TYPE_Q8_0
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
vec4 Integers(vec4 values) { return values * kPlaces; }
// Bytes from the row's start to the integers that a lane takes in the step at `col`.
uint QuantAt(uint cols, uint col, uint lane) {
  if (col >= ChunkedCols(cols)) return col + 4u * lane;
  return col / 512u * 512u + lane * 16u + (col / 128u & 3u) * 4u;
}
// And to the scale of its block.
uint ScaleAt(uint cols, uint col, uint lane) {
  const uint block = col >= ChunkedCols(cols)
                         ? col / 32u + lane / 8u
                         : col / 512u * 16u + lane / 8u * 4u + (col / 128u & 3u);
  return cols + block * 2u;
}
#else
// `bits`: in each half four times four bits, each the integer plus 8; those of the high half where
// `high`. Four bits at the end of an f16 are a subnormal number of that many units of 2^-24, four
// places further on of 16 times as many: both halves take one step, and what is converted has no
// sign. So a sum of these begins with kLess times the sum of x, and is kUnits too small in the end.
vec4 Values(uint bits, bool high) {
  const uint upper = bits >> 8;
  const vec2 a = unpackHalf2x16(bits & 0x000F000Fu);
  const vec2 b = unpackHalf2x16(bits & 0x00F000F0u);
  const vec2 c = unpackHalf2x16(upper & 0x000F000Fu);
  const vec2 d = unpackHalf2x16(upper & 0x00F000F0u);
  return high ? vec4(a.y, b.y, c.y, d.y) : vec4(a.x, b.x, c.x, d.x);
}
const float kUnits = 16777216.0;
const float kLess = -8.0 / kUnits;
// The integers themselves.
vec4 Integers(vec4 values) { return values * kPlaces * kUnits - 8.0; }
uint QuantAt(uint cols, uint col, uint lane) {
  if (col < ChunkedCols(cols)) return col / 1024u * 512u + lane * 16u + (col / 128u & 7u) * 2u;
  if (col < PairedCols(cols)) return col / 256u * 128u + lane * 4u + (col / 128u & 1u) * 2u;
  return col / 2u + 2u * lane;
}
uint ScaleAt(uint cols, uint col, uint lane) {
  const uint block = col >= ChunkedCols(cols)
                         ? col / 32u + lane / 8u
                         : col / 1024u * 32u + lane / 8u * 8u + (col / 128u & 7u);
  return cols / 2u + block * 2u;
}
#endif
#endif

#endif
