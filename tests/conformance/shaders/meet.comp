#version 460
// "meet": adds 1 to counter[0] and returns when it has reached `wanted`.
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) buffer Counter { uint counter[]; };
layout(push_constant) uniform Constants { uint wanted, skip_counter; };

void main() {
  if (gl_LocalInvocationID.x != 0u) return;
  atomicAdd(counter[skip_counter / 4u], 1u);
  while (atomicOr(counter[skip_counter / 4u], 0u) < wanted) {
  }
}
