// embedding (embedding.h): one workgroup a token.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/weights.glsl"

layout(push_constant, std430) uniform Constants {
  uint table_rows;
  uint cols;
  uint table_at;
  uint ids_at;
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer Table { uint table[]; };
layout(std430, set = 0, binding = 1) readonly buffer Ids { uint ids[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float out_values[]; };

#define WORDS table
#define WORD_NAME TableWord
#define HALF_NAME TableHalf
#include "kernels/vulkan/words.glsl"

float Value(uint row_at, uint col) {
#if defined(TYPE_F32)
  return uintBitsToFloat(TableWord(row_at + col * 4u));
#elif defined(TYPE_F16)
  return HalfToFloat(TableHalf(row_at + col * 2u));
#elif defined(TYPE_BF16)
  return uintBitsToFloat(TableHalf(row_at + col * 2u) << 16);
#else
  const uint step_col = col / STEP_COLS * STEP_COLS;
#ifdef TYPE_Q8_0
  const uint lane = (col - step_col) / 4u;
  const vec4 integers = Integers(TableWord(row_at + QuantAt(c.cols, step_col, lane)));
#else
  const uint lane = (col - step_col) / 32u * 4u + col % 16u / 4u;
  const bool high = (col - step_col) / 4u == HighFour(lane);
  const vec4 integers = Integers(TableWord(row_at + QuantAt(c.cols, step_col, lane)), high);
#endif
  const float integer = integers[col & 3u];
  return Mul(integer, HalfToFloat(TableHalf(row_at + ScaleAt(c.cols, step_col, lane))));
#endif
}

void main() {
  const uint token = gl_WorkGroupID.x;
  // As unsigned, a negative id is as large as one past the end.
  const uint id = ids[c.ids_at / 4u + token];
  const uint row_at = c.table_at + id * RowBytes(c.cols);
  for (uint col = Thread(); col < c.cols; col += THREADS) {
    out_values[c.out_at / 4u + token * c.cols + col] =
        id < c.table_rows ? Value(row_at, col) : 0.0;
  }
}
