#version 460
// "halve": x[i] *= 0.5, computed in 16-bit floats.
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform Constants { uint skip_x; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < Count(x.length(), skip_x)) x[skip_x / 4u + i] = float(float16_t(x[skip_x / 4u + i]) * float16_t(0.5));
}
