// Multiplies values, adds up those of a workgroup, and tells three kinds of value apart.
#version 450
#ifndef THREADS
#define THREADS 64
#endif
#ifndef FACTOR
#define FACTOR 2.0
#endif
#ifdef SPECIALIZED
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kCount = 16;
#else
layout(local_size_x = THREADS) in;
const uint kCount = 16;
#endif

layout(push_constant, std430) uniform Constants { uint count; } c;
layout(std430, set = 0, binding = 0) readonly buffer A { float a[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Out { float out_values[]; };

struct Pair {
  float sum;
  vec3 parts;
};
shared Pair pairs[kCount];
shared uint flags[3];

float Scaled(float value) {
  float result = value * FACTOR;
  switch (int(value)) {
    case 1:
      result += 1.0;
      break;
    case 7:
      result = exp(result);
      break;
    default:
      break;
  }
  return result;
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= c.count) return;
  pairs[gl_LocalInvocationID.x % kCount].sum = Scaled(a[i]);
  pairs[gl_LocalInvocationID.x % kCount].parts = vec3(float(i));
  flags[i % 3u] = i;
  barrier();
  out_values[i] = pairs[0].sum + pairs[1].parts.y + float(flags[1]);
}
