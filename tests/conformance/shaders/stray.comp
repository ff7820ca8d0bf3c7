#version 460
// "stray": to[write_at] = from[read_at], words counted from the views' first ones, which may lie outside.
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(set = 0, binding = 1) buffer To { uint to[]; };
layout(push_constant) uniform Constants { int read_at, write_at; uint skip_from, skip_to; };

void main() {
  if (gl_GlobalInvocationID.x != 0u) return;
  to[int(skip_to / 4u) + write_at] = from[int(skip_from / 4u) + read_at];
}
