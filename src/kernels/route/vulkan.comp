// route (route.h): one workgroup a token.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 32
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint experts;
  uint used;
  uint normalise;
  uint logits_at;
  uint ids_at;
  uint weights_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer Logits { float logits[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Ids { uint ids[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Weights { float weights[]; };

void Out(uint j, uint id, float weight) {
  const uint i = gl_WorkGroupID.x * c.used + j;
  ids[c.ids_at / 4u + i] = id;
  weights[c.weights_at / 4u + i] = weight;
}
#define ROUTE_OUT Out
#include "kernels/vulkan/route_row.glsl"

void main() {
  for (uint i = Thread(); i < c.experts; i += THREADS) {
    route_logits[i] = logits[c.logits_at / 4u + gl_WorkGroupID.x * c.experts + i];
  }
  barrier();
  RouteRow(c.experts, c.used, c.normalise != 0u);
}
