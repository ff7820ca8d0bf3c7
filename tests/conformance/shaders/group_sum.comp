#version 460
// "group_sum": the sum of each workgroup's elements, added in their order from a copy in shared memory.
#include "tests/conformance/shaders/views.glsl"

layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Sums { float sums[]; };
layout(push_constant) uniform Constants { uint skip_x, skip_sums; };

shared float copied[WORKGROUP];

void main() {
  const uint count = Count(x.length(), skip_x);
  const uint i = gl_GlobalInvocationID.x;
  copied[gl_LocalInvocationID.x] = i < count ? x[skip_x / 4u + i] : 0.0;
  barrier();
  if (gl_LocalInvocationID.x != 0u) return;
  precise float sum = 0.0;
  for (uint k = 0u; k < WORKGROUP; ++k) sum += copied[k];
  sums[skip_sums / 4u + gl_WorkGroupID.x] = sum;
}
