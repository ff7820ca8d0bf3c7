#version 460
// "hold": waits until go[0] is not 0, then sets done[0] to 1.
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) buffer Go { uint go[]; };
layout(set = 0, binding = 1) buffer Done { uint done[]; };
layout(push_constant) uniform Constants { uint skip_go, skip_done; };

void main() {
  if (gl_LocalInvocationID.x != 0u) return;
  while (atomicOr(go[skip_go / 4u], 0u) == 0u) {
  }
  atomicExchange(done[skip_done / 4u], 1u);
}
