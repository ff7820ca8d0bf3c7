// Sums over lanes and workgroups in one order, whatever the size of a subgroup: in a tree over 32
// lanes, lane l with lane l ^ 16, then l ^ 8, 4, 2, 1. Every invocation of the workgroup must come
// here together, and all lanes get the result.
#ifndef ASSAY_KERNELS_VULKAN_REDUCE_GLSL
#define ASSAY_KERNELS_VULKAN_REDUCE_GLSL

#include "kernels/vulkan/common.glsl"

shared float reduce_room[THREADS];

float LaneSum(float value) {
  if (gl_SubgroupSize >= 32u) {
    float v = Add(value, subgroupShuffleXor(value, 16u));
    v = Add(v, subgroupShuffleXor(v, 8u));
    v = Add(v, subgroupShuffleXor(v, 4u));
    v = Add(v, subgroupShuffleXor(v, 2u));
    return Add(v, subgroupShuffleXor(v, 1u));
  }
  reduce_room[Thread()] = value;
  barrier();
  const uint base = Thread() & ~31u;
  float tree[16];
  for (uint i = 0u; i < 16u; ++i) {
    tree[i] = Add(reduce_room[base + i], reduce_room[base + i + 16u]);
  }
  for (uint n = 8u; n > 0u; n >>= 1) {
    for (uint i = 0u; i < n; ++i) tree[i] = Add(tree[i], tree[i + n]);
  }
  barrier();
  return tree[0];
}

// A NaN may be passed over.
float LaneMax(float value) {
  if (gl_SubgroupSize >= 32u) {
    float v = max(value, subgroupShuffleXor(value, 16u));
    v = max(v, subgroupShuffleXor(v, 8u));
    v = max(v, subgroupShuffleXor(v, 4u));
    v = max(v, subgroupShuffleXor(v, 2u));
    return max(v, subgroupShuffleXor(v, 1u));
  }
  reduce_room[Thread()] = value;
  barrier();
  const uint base = Thread() & ~31u;
  float top = reduce_room[base];
  for (uint i = 1u; i < 32u; ++i) top = max(top, reduce_room[base + i]);
  barrier();
  return top;
}

// Over the whole workgroup: the groups' sums in the order of the groups.
shared float block_room[THREADS / 32];
float BlockSum(float value) {
  const float part = LaneSum(value);
  if (Lane() == 0u) block_room[Group()] = part;
  barrier();
  float sum = block_room[0];
  for (uint i = 1u; i < THREADS / 32; ++i) sum = Add(sum, block_room[i]);
  barrier();
  return sum;
}

#endif
