#version 460
// "add" and "mul": out[i] = a[i] OPERATOR b[i].
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(push_constant) uniform Constants { uint skip_a, skip_b, skip_result; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= Count(result.length(), skip_result)) return;
  result[skip_result / 4u + i] = a[skip_a / 4u + i] OPERATOR b[skip_b / 4u + i];
}
