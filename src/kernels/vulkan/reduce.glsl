// Sums over lanes and workgroups in one order, whatever the size of a subgroup: in a tree over 32
// lanes, lane l with lane l ^ 16, then l ^ 8, 4, 2, 1. What lies in another subgroup goes through
// shared memory. Every invocation of the workgroup must come here together, and all lanes get the
// result.
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
  const uint t = Thread();
  reduce_room[t] = value;
  barrier();
  if (gl_SubgroupSize >= 8u) {
    float v = Add(Add(value, reduce_room[t ^ 16u]),
                  Add(reduce_room[t ^ 8u], reduce_room[t ^ 24u]));
    barrier();
    v = Add(v, subgroupShuffleXor(v, 4u));
    v = Add(v, subgroupShuffleXor(v, 2u));
    return Add(v, subgroupShuffleXor(v, 1u));
  }
  const uint base = t & ~31u;
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
  const uint t = Thread();
  reduce_room[t] = value;
  barrier();
  float top = value;
  if (gl_SubgroupSize >= 8u) {
    top = max(max(value, reduce_room[t ^ 16u]), max(reduce_room[t ^ 8u], reduce_room[t ^ 24u]));
    barrier();
    top = max(top, subgroupShuffleXor(top, 4u));
    top = max(top, subgroupShuffleXor(top, 2u));
    return max(top, subgroupShuffleXor(top, 1u));
  }
  for (uint i = 0u; i < 32u; ++i) top = max(top, reduce_room[(t & ~31u) + i]);
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
