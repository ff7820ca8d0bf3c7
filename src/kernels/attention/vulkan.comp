// attention (attention.h): workgroup (x, y) takes query head x of token y. HALF: the caches are f16.
//
// Tiles of 32 positions from position 0 on go round the groups of lanes: tile t to group
// t % GROUPS, which merges its own into maximum, sum and output in rising order; at last the groups
// are merged in their order. So the bits depend on nothing but the positions seen.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 512
#include "kernels/vulkan/reduce.glsl"

#define GROUPS (THREADS / 32)
#define MAX_HEAD_DIM 256

layout(push_constant, std430) uniform Constants {
  uint tokens;
  uint heads;
  uint kv_heads;
  uint head_dim;
  uint first_position;
  uint heads_per_group;
  uint tokens_per_group;
  float scale;
  uint q_at;
  uint k_at;
  uint v_at;
  uint out_at;
}
c;

layout(std430, set = 0, binding = 0) readonly buffer Q { float q[]; };
layout(std430, set = 0, binding = 1) readonly buffer KWords { uint k32[]; };
layout(std430, set = 0, binding = 1) readonly buffer KInFours { uvec4 k128[]; };
layout(std430, set = 0, binding = 2) readonly buffer VWords { uint v32[]; };
layout(std430, set = 0, binding = 2) readonly buffer VInPairs { uvec2 v64[]; };
layout(std430, set = 0, binding = 2) readonly buffer VInFours { uvec4 v128[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Out { float out_values[]; };

#define WORDS k32
#define WORD_NAME KWord
#define HALF_NAME KHalf
#include "kernels/vulkan/words.glsl"
#define WORDS v32
#define WORD_NAME VWord
#define HALF_NAME VHalf
#include "kernels/vulkan/words.glsl"

shared vec4 query[MAX_HEAD_DIM / 4];
shared float weights[THREADS];
shared float tops[GROUPS];
shared float sums[GROUPS];
shared vec4 outs[GROUPS * MAX_HEAD_DIM / 4];

#ifdef HALF
const uint kCachedBytes = 2u;
#else
const uint kCachedBytes = 4u;
#endif

// Four values of a cache from byte `at` on, at any alignment, and of V in one load.
vec4 KFour(uint at) {
#ifdef HALF
  return vec4(unpackHalf2x16(KWord(at)), unpackHalf2x16(KWord(at + 4u)));
#else
  return uintBitsToFloat(
      uvec4(k32[at / 4u], k32[at / 4u + 1u], k32[at / 4u + 2u], k32[at / 4u + 3u]));
#endif
}
vec4 VFour(uint at) {
#ifdef HALF
  return vec4(unpackHalf2x16(VWord(at)), unpackHalf2x16(VWord(at + 4u)));
#else
  return uintBitsToFloat(
      uvec4(v32[at / 4u], v32[at / 4u + 1u], v32[at / 4u + 2u], v32[at / 4u + 3u]));
#endif
}
vec4 VWide(uint at) {
#ifdef HALF
  const uvec2 words = v64[at / 8u];
  return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
#else
  return uintBitsToFloat(v128[at / 16u]);
#endif
}

vec4 Fma4(vec4 a, vec4 b, vec4 to) {
  precise vec4 r = fma(a, b, to);
  return r;
}
vec4 Mul4(vec4 a, vec4 b) {
  precise vec4 r = a * b;
  return r;
}

// Eight lanes share a key: each takes every eighth chunk of eight columns, as four sums, of the
// columns that are equal modulo 4.
const uint kChunk = 8u;
#ifdef HALF
#define CHUNKS 2
#else
#define CHUNKS 1
#endif
// Adds CHUNKS chunks of each of eight keys, the chunks 64 columns apart and the first at `column`.
// Sixteen loads at once, in a branch of their own: one after another they would only wait.
void AddWide(uint keys[8], uint column, inout vec4 sums[8]) {
  uvec4 words[16];
  [[unroll]] for (uint b = 0u; b < 8u; ++b) {
    [[unroll]] for (uint j = 0u; j < 2u; ++j) {
#ifdef HALF
      const uint col = column + 64u * j;
      words[2u * b + j] = col < c.head_dim ? k128[(keys[b] + col * 2u) / 16u] : uvec4(0u);
#else
      words[2u * b + j] =
          column < c.head_dim ? k128[(keys[b] + column * 4u) / 16u + j] : uvec4(0u);
#endif
    }
  }
  [[unroll]] for (uint j = 0u; j < CHUNKS; ++j) {
    const uint col = column + 64u * j;
    if (col < c.head_dim) {
      const vec4 low = query[col / 4u];
      const vec4 high = query[col / 4u + 1u];
      [[unroll]] for (uint b = 0u; b < 8u; ++b) {
#ifdef HALF
        const uvec4 w = words[2u * b + j];
        sums[b] = Fma4(vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y)), low, sums[b]);
        sums[b] = Fma4(vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w)), high, sums[b]);
#else
        sums[b] = Fma4(uintBitsToFloat(words[2u * b]), low, sums[b]);
        sums[b] = Fma4(uintBitsToFloat(words[2u * b + 1u]), high, sums[b]);
#endif
      }
    }
  }
}
// Over eight lanes. Every invocation of the workgroup comes here.
float EightSum(float value) {
  if (gl_SubgroupSize >= 8u) {
    float v = Add(value, subgroupShuffleXor(value, 4u));
    v = Add(v, subgroupShuffleXor(v, 2u));
    return Add(v, subgroupShuffleXor(v, 1u));
  }
  const uint t = Thread();
  reduce_room[t] = value;
  barrier();
  float tree[4];
  for (uint i = 0u; i < 4u; ++i) {
    tree[i] = Add(reduce_room[(t & ~7u) + i], reduce_room[(t & ~7u) + i + 4u]);
  }
  barrier();
  return Add(Add(tree[0], tree[2]), Add(tree[1], tree[3]));
}

// What a group of lanes has written is seen by all of it.
void GroupBarrier() {
  if (gl_SubgroupSize >= 32u) {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
  } else {
    barrier();
  }
}

void main() {
  const uint head = gl_WorkGroupID.x;
  const uint token = gl_WorkGroupID.y;
  const uint lane = Lane();
  const uint group = Group();
  const uint seen = c.first_position + token + 1u;
  const uint stride = c.kv_heads * c.head_dim * kCachedBytes;
  const uint kv_at = head / (c.heads / c.kv_heads) * c.head_dim * kCachedBytes;
  const uint k_begin = c.k_at + kv_at;
  const uint v_begin = c.v_at + kv_at;
  const bool k_wide = (k_begin & 15u) == 0u && (stride & 15u) == 0u;
  const bool v_wide = (v_begin & 15u) == 0u && (stride & 15u) == 0u;
  const uint q_begin = c.q_at / 4u + (token * c.heads + head) * c.head_dim;
  for (uint i = Thread(); i < c.head_dim / 4u; i += THREADS) {
    const uint from = q_begin + 4u * i;
    query[i] = vec4(q[from], q[from + 1u], q[from + 2u], q[from + 3u]);
  }
  barrier();

  float top = -Infinity();
  float sum = 0.0;
  // Of dimensions 4 * lane..., and those 128 further on.
  vec4 result[2] = vec4[2](vec4(0.0), vec4(0.0));
  for (uint base = 0u; base < seen; base += GROUPS * 32) {
    const uint tile = base + group * 32u;
    // Key 4 b + lane / 8 of the tile; those behind the last position are of the last one.
    uint keys[8];
    vec4 products[8];
    [[unroll]] for (uint b = 0u; b < 8u; ++b) {
      keys[b] = k_begin + min(tile + 4u * b + lane / 8u, seen - 1u) * stride;
      products[b] = vec4(0.0);
    }
    for (uint column = kChunk * (lane & 7u); column < c.head_dim; column += 64u * CHUNKS) {
      if (k_wide) {
        AddWide(keys, column, products);
      } else {
        for (uint col = column; col < min(c.head_dim, column + 64u * CHUNKS); col += 64u) {
          for (uint b = 0u; b < 8u; ++b) {
            products[b] = Fma4(KFour(keys[b] + col * kCachedBytes), query[col / 4u], products[b]);
            products[b] = Fma4(KFour(keys[b] + (col + 4u) * kCachedBytes), query[col / 4u + 1u],
                               products[b]);
          }
        }
      }
    }
    [[unroll]] for (uint b = 0u; b < 8u; ++b) {
      const vec4 four = products[b];
      const float product = EightSum(Add(Add(four.x, four.z), Add(four.y, four.w)));
      if ((lane & 7u) == 0u) weights[group * 32u + 4u * b + lane / 8u] = Mul(product, c.scale);
    }
    GroupBarrier();
    const bool live = tile + lane < seen;
    const float score = live ? weights[Thread()] : -Infinity();
    const float new_top = max(top, LaneMax(score));
    const float weight = live ? Exp(Sub(score, new_top)) : 0.0;
    const float tile_sum = LaneSum(weight);
    weights[Thread()] = weight;
    GroupBarrier();
    if (tile < seen) {
      const float factor = Exp(Sub(top, new_top));
      sum = Fma(sum, factor, tile_sum);
      top = new_top;
      const uint count = min(32u, seen - tile);
      [[unroll]] for (uint part = 0u; part < 2u; ++part) {
        const uint d = part * 128u + lane * 4u;
        if (d >= c.head_dim) continue;
        vec4 to = Mul4(result[part], vec4(factor));
        const uint column = v_begin + tile * stride + d * kCachedBytes;
        if (v_wide) {
          // Those behind the last position are of the last one.
          for (uint n = 0u; n < count; n += 16u) {
            vec4 fours[16];
            [[unroll]] for (uint i = 0u; i < 16u; ++i) {
              fours[i] = VWide(column + min(n + i, count - 1u) * stride);
            }
            [[unroll]] for (uint i = 0u; i < 16u; ++i) {
              if (n + i < count) to = Fma4(vec4(weights[group * 32u + n + i]), fours[i], to);
            }
          }
        } else {
          for (uint n = 0u; n < count; ++n) {
            to = Fma4(vec4(weights[group * 32u + n]), VFour(column + n * stride), to);
          }
        }
        result[part] = to;
      }
    }
    GroupBarrier();
  }

  if (lane == 0u) {
    tops[group] = top;
    sums[group] = sum;
  }
  [[unroll]] for (uint part = 0u; part < 2u; ++part) {
    const uint d = part * 128u + lane * 4u;
    if (d < c.head_dim) outs[group * (MAX_HEAD_DIM / 4) + d / 4u] = result[part];
  }
  barrier();
  const uint groups = min(uint(GROUPS), (seen + 31u) / 32u);
  if (Thread() >= c.head_dim / 4u) return;
  float all_top = tops[0];
  for (uint g = 1u; g < groups; ++g) all_top = max(all_top, tops[g]);
  float all_sum = 0.0;
  vec4 all = vec4(0.0);
  for (uint g = 0u; g < groups; ++g) {
    const float factor = Exp(Sub(tops[g], all_top));
    all_sum = Fma(sums[g], factor, all_sum);
    all = Fma4(outs[g * (MAX_HEAD_DIM / 4) + Thread()], vec4(factor), all);
  }
  const uint to = c.out_at / 4u + (token * c.heads + head) * c.head_dim + 4u * Thread();
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    precise float value = all[i] / all_sum;
    out_values[to + i] = value;
  }
}
