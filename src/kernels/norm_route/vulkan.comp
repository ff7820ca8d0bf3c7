// norm_route (norm_route.h): one workgroup a token.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#define TYPE_F32
#include "kernels/vulkan/dots_step.glsl"
#include "kernels/vulkan/norm.glsl"
#include "kernels/vulkan/reduce.glsl"

layout(push_constant, std430) uniform Constants {
  uint cols;
  float eps;
  uint experts;
  uint used;
  uint normalise;
  uint x_at;
  uint weight_at;
  uint router_at;
  uint norm_at;
  uint ids_at;
  uint weights_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Weight { float weight[]; };
// Written, and read again by the other invocations of the workgroup.
layout(std430, set = 0, binding = 3) coherent buffer Norm { float norm[]; };
layout(std430, set = 0, binding = 3) coherent buffer NormInFours { vec4 norm4[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Ids { uint ids[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Weights { float weights[]; };

#define NORM_X x
#define NORM_WEIGHT weight
#define NORM_OUT norm
#include "kernels/vulkan/norm_row.glsl"

#define M(name) router_##name
#define MATRIX_BINDING 2
#include "kernels/vulkan/matrix.glsl"
#define X norm
#define X4 norm4
#define DOTS Dots
#define ROWS 2
#define TOKENS 1
#include "kernels/vulkan/dots.glsl"

void Out(uint j, uint id, float chosen) {
  const uint i = gl_WorkGroupID.x * c.used + j;
  ids[c.ids_at / 4u + i] = id;
  weights[c.weights_at / 4u + i] = chosen;
}
#define ROUTE_OUT Out
#include "kernels/vulkan/route_row.glsl"

void main() {
  const uint row = gl_WorkGroupID.x * c.cols;
  NormRow(c.x_at / 4u + row, c.weight_at / 4u, c.norm_at / 4u + row, c.cols, c.eps);
  groupMemoryBarrier();
  barrier();
  for (uint expert = 0u; expert < c.experts; expert += THREADS / 32 * 2) {
    const uint first = expert + Group() * 2u;
    float sums[2];
    Dots(c.router_at, first, c.experts - 1u, c.cols, uint[1](c.norm_at / 4u + row), sums);
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      if (Lane() == i && first + i < c.experts) route_logits[first + i] = sums[i];
    }
  }
  barrier();
  RouteRow(c.experts, c.used, c.normalise != 0u);
}
