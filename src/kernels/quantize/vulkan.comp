// quantize (quantize.h): each invocation takes one block of 32, or with COPY one value at a time.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/common.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  uint cols_per_group;
  uint x_at;
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Out { uint out_words[]; };
#ifdef COPY
layout(std430, set = 0, binding = 0) readonly buffer XInFours { uvec4 x4[]; };
layout(std430, set = 0, binding = 1) writeonly buffer OutInFours { uvec4 out4[]; };
#endif

// Rounded once: a device may be some units off in the last place of the quotient that it computes.
float Divide(float a, float b) {
  precise double r = double(a) / double(b);
  return float(r);
}

void QuantizeBlock(uint row, uint block) {
  const uint from = c.x_at / 4u + row * c.cols + block * 32u;
  uint top = 0u;
  for (uint i = 0u; i < 32u; ++i) top = max(top, x[from + i] & 0x7FFFFFFFu);
  const bool finite = top < 0x7F800000u;
  const float largest = uintBitsToFloat(top);
  float scale = 0.0;
  float inverse = 0.0;
  if (!finite) {
    scale = NaN();
  } else if (largest >= 7.888609052210118e-31) {  // 2^-100
    scale = Divide(largest, 127.0);
    inverse = Divide(127.0, largest);
  }
  const uint blocks = c.cols / 32u;
  const uint to = c.out_at / 4u + row * (c.cols / 4u + blocks * 2u);
  int sum = 0;
  for (uint word = 0u; word < 8u; ++word) {
    uint packed = 0u;
    for (uint i = 0u; i < 4u; ++i) {
      int value = 0;
      if (finite) {
        value = int(roundEven(Mul(uintBitsToFloat(x[from + word * 4u + i]), inverse)));
      }
      sum += value;
      packed |= (uint(value) & 0xFFu) << (8u * i);
    }
    out_words[to + block * 8u + word] = packed;
  }
  out_words[to + c.cols / 4u + block] = floatBitsToUint(scale);
  out_words[to + c.cols / 4u + blocks + block] = uint(sum);
}

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint begin = gl_WorkGroupID.x * c.cols_per_group;
  const uint end = min(c.cols, begin + c.cols_per_group);
#ifdef COPY
  const uint from = c.x_at / 4u + row * c.cols;
  const uint to = c.out_at / 4u + row * c.cols;
  uint single = begin;
  if (((from | to | begin) & 3u) == 0u) {
    for (uint i = begin / 4u + Thread(); i < end / 4u; i += THREADS) {
      out4[to / 4u + i] = x4[from / 4u + i];
    }
    single = max(begin, end & ~3u);
  }
  for (uint i = single + Thread(); i < end; i += THREADS) out_words[to + i] = x[from + i];
#else
  for (uint i = begin / 32u + Thread(); i < end / 32u; i += THREADS) QuantizeBlock(row, i);
#endif
}
