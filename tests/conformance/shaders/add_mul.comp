#version 460
// "add_mul": result[i] = (a[i] + b[i]) * c[i], each rounded.
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) readonly buffer C { float c[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float result[]; };
layout(push_constant) uniform Constants { uint skip_a, skip_b, skip_c, skip_result; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= Count(result.length(), skip_result)) return;
  precise const float sum = a[skip_a / 4u + i] + b[skip_b / 4u + i];
  precise const float product = sum * c[skip_c / 4u + i];
  result[skip_result / 4u + i] = product;
}
