#version 460
// "scale": x[i] *= FACTOR, a specialization constant.
#include "tests/conformance/shaders/views.glsl"

layout(constant_id = 0) const uint FACTOR = 1u;
layout(set = 0, binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform Constants { uint skip_x; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < Count(x.length(), skip_x)) x[skip_x / 4u + i] *= FACTOR;
}
