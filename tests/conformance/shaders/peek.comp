#version 460
// "peek": copies x[0] to seen[0], then sets done[0] to 1.
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) buffer X { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Seen { uint seen[]; };
layout(set = 0, binding = 2) buffer Done { uint done[]; };
layout(push_constant) uniform Constants { uint skip_x, skip_seen, skip_done; };

void main() {
  if (gl_LocalInvocationID.x != 0u) return;
  seen[skip_seen / 4u] = atomicOr(x[skip_x / 4u], 0u);
  atomicExchange(done[skip_done / 4u], 1u);
}
