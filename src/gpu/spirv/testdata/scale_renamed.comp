// The shader of scale.comp with other names, on other lines.
//
// Not one instruction differs.
#version 450
#ifndef THREADS
#define THREADS 64
#endif
#ifndef FACTOR
#define FACTOR 2.0
#endif
#ifdef SPECIALIZED
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kPlaces = 16;
#else
layout(local_size_x = THREADS) in;
const uint kPlaces = 16;
#endif

layout(push_constant, std430) uniform Constants { uint count; } c;
layout(std430, set = 0, binding = 0) readonly buffer A { float a[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Out { float written[]; };

struct Two {
  float total;
  vec3 trio;
};
shared Two both[kPlaces];
shared uint marks[3];

float Stretch(float given) {
  float answer = given * FACTOR;
  switch (int(given)) {
    case 1:
      answer += 1.0;
      break;
    case 7:
      answer = exp(answer);
      break;
    default:
      break;
  }
  return answer;
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= c.count) return;
  both[gl_LocalInvocationID.x % kPlaces].total = Stretch(a[i]);
  both[gl_LocalInvocationID.x % kPlaces].trio = vec3(float(i));
  marks[i % 3u] = i;
  barrier();


  written[i] = both[0].total + both[1].trio.y + float(marks[1]);
}
