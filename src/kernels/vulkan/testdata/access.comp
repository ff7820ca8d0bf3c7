// What the kernel of shader_access_test.cc declares, and with one of the defines something else.
#version 450
#ifndef THREADS
#define THREADS 64
#endif
layout(local_size_x = THREADS) in;

layout(push_constant, std430) uniform Constants {
  uint count;
#ifdef LONG_PUSH
  uint more;
#endif
  uint at[3];
}
c;

#ifdef WRITES_INPUT
layout(std430, set = 0, binding = 0) buffer A { uint a[]; };
#else
layout(std430, set = 0, binding = 0) readonly buffer A { uint a[]; };
#endif
// The same buffer in fours, as a kernel that loads wide words has it.
#ifdef WRITES_VIEW
layout(std430, set = 0, binding = 0) buffer AInFours { uvec4 a4[]; };
#else
layout(std430, set = 0, binding = 0) readonly buffer AInFours { uvec4 a4[]; };
#endif
layout(std430, set = 0, binding = 1) readonly buffer B { uint b[]; };
#if defined(READS_OUTPUT)
layout(std430, set = 0, binding = 2) buffer Out { uint out_values[]; };
#elif defined(READS_BACK)
layout(std430, set = 0, binding = 2) coherent buffer Out { uint out_values[]; };
#elif defined(OTHER_SET)
layout(std430, set = 1, binding = 2) writeonly buffer Out { uint out_values[]; };
#else
layout(std430, set = 0, binding = 2) writeonly buffer Out { uint out_values[]; };
#endif
#ifdef FOURTH_BINDING
layout(std430, set = 0, binding = 3) readonly buffer D { uint d[]; };
#endif
#ifdef UNIFORM_BUFFER
layout(std140, set = 0, binding = 4) uniform U { uint u; };
#endif

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= c.count) return;
  uint value = a[c.at[0] + i] + a4[i / 4u].x;
#ifndef UNUSED_BINDING
  value += b[c.at[1] + i];
#endif
#ifdef WRITES_INPUT
  a[c.at[0] + i] = 0u;
#endif
#ifdef WRITES_VIEW
  a4[i / 4u] = uvec4(0u);
#endif
#if defined(READS_OUTPUT) || defined(READS_BACK)
  value += out_values[c.at[2] + i];
#endif
#ifdef FOURTH_BINDING
  value += d[i];
#endif
#ifdef UNIFORM_BUFFER
  value += u;
#endif
#ifdef LONG_PUSH
  value += c.more;
#endif
  out_values[c.at[2] + i] = value;
}
