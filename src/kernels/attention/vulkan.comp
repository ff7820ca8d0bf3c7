// attention (attention.h): a workgroup takes up to QUERIES queries over one kv head, which are
// counted through its query heads token by token. HALF: the caches are f16. SPLIT: several
// workgroups share the positions of those queries; otherwise one takes them all.
//
// Positions go in splits of 64 from position 0 on, and splits in runs of 16. A split has its own
// maximum, sum and output; the splits of a run are merged in rising order, then the runs. So the
// bits depend on nothing but the positions seen, whoever takes a split. With SPLIT a workgroup
// leaves what it has found in the partials; whichever comes last merges them. It knows that from a
// counter, which it sets back to 0.
#version 450
#extension GL_GOOGLE_include_directive : require

#define THREADS 256
#include "kernels/vulkan/reduce.glsl"

#ifndef QUERIES
#define QUERIES 8
#endif
#define MAX_HEAD_DIM 256
const uint kSplit = 64u;
const uint kRun = 16u;
// What an invocation takes of a split: chunks of so many keys and values.
#define KEYS 2
#define VALUES 4

layout(push_constant, std430) uniform Constants {
  uint tokens;
  uint heads;
  uint kv_heads;
  uint head_dim;
  uint first_position;
#ifdef SPLIT
  uint splits_per_group;
#else
  uint heads_per_group;
  uint tokens_per_group;
#endif
  float scale;
  uint q_at;
  uint k_at;
  uint v_at;
  uint out_at;
#ifdef SPLIT
  uint partials_at;
  uint counters_at;
#endif
}
c;

layout(std430, set = 0, binding = 0) readonly buffer Q { float q[]; };
layout(std430, set = 0, binding = 1) readonly buffer KWords { uint k32[]; };
layout(std430, set = 0, binding = 1) readonly buffer KInFours { uvec4 k128[]; };
layout(std430, set = 0, binding = 2) readonly buffer VWords { uint v32[]; };
layout(std430, set = 0, binding = 2) readonly buffer VInFours { uvec4 v128[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Out { float out_values[]; };
#ifdef SPLIT
// The outputs of each unit of positions, token and query head, then the maximum and sum of each.
layout(std430, set = 0, binding = 4) coherent buffer Outputs { vec4 outputs[]; };
layout(std430, set = 0, binding = 4) coherent buffer TopsAndSums { vec2 tops_and_sums[]; };
layout(std430, set = 0, binding = 5) coherent buffer Counters { uint counters[]; };
#endif

// Eight values of a cached row, a chunk, are as many loads of 16 bytes.
#ifdef HALF
#define LOADS 1
const uint kCachedBytes = 2u;
#else
#define LOADS 2
const uint kCachedBytes = 4u;
#endif

// By QueryAt().
shared vec4 queries[QUERIES * (MAX_HEAD_DIM / 4)];
// Of each position of the split and query.
#if QUERIES == 2
#define QUERIES_AT_ONCE 2
shared vec2 weights[kSplit];
#else
#define QUERIES_AT_ONCE 4
shared vec4 weights[kSplit * (QUERIES / 4)];
#endif
// The scores of each query and position, and what lanes hand to lanes of other subgroups.
shared vec4 room[1024];
// Each query sees the positions below it.
shared uint seen_by[QUERIES];

vec4 Fma4(vec4 a, vec4 b, vec4 to) {
  precise vec4 r = fma(a, b, to);
  return r;
}
vec4 Mul4(vec4 a, vec4 b) {
  precise vec4 r = a * b;
  return r;
}
vec4 Add4(vec4 a, vec4 b) {
  precise vec4 r = a + b;
  return r;
}

// Columns 4 i ... of query n. In each 64 columns the lower halves of all chunks come first, so that
// eight lanes that read one half of their chunks read 128 bytes.
uint QueryAt(uint n, uint i) {
  return n * (MAX_HEAD_DIM / 4) + (i & ~15u) + (i & 1u) * 8u + (i >> 1 & 7u);
}

// What a workgroup is about, the same in all of it.
struct Scope {
  uint fan;  // Query heads over a kv head.
  uint kv_head;
  uint first_query;
  uint max_seen;  // The most that one of its queries sees.
  uint min_seen;  // The least.
  uint stride;
  uint k_begin;
  uint v_begin;
  bool k_wide;
  bool v_wide;
};
// The query of this group of lanes, which all merging is done for.
struct Query {
  bool here;
  uint token;
  uint head;
  uint seen;
};
// What some positions came to: maximum, sum of exponentials, and columns 4 * lane ... and those 128
// further on.
struct Found {
  float top;
  float sum;
  vec4 near;
  vec4 far;
};
Found Nothing() { return Found(-Infinity(), 0.0, vec4(0.0), vec4(0.0)); }

#define WORDS k32
#define WORD_NAME KWord
#define HALF_NAME KHalf
#define QUAD_NAME AnyK
#include "kernels/vulkan/words.glsl"
#define WORDS v32
#define WORD_NAME VWord
#define HALF_NAME VHalf
#define QUAD_NAME AnyV
#include "kernels/vulkan/words.glsl"

// A token's number among those of the chunk.
uint TokenOf(uint query, uint fan) { return c.tokens == 1u ? 0u : query / fan; }

Query QueryOf(Scope scope, uint n) {
  const uint number = scope.first_query + n;
  Query query;
  query.here = n < QUERIES && number < c.tokens * scope.fan;
  query.token = TokenOf(number, scope.fan);
  query.head = scope.kv_head * scope.fan + number - query.token * scope.fan;
  query.seen = query.here ? c.first_position + query.token + 1u : 0u;
  return query;
}

// Chunks 8 * (lane % 8) and the one 64 columns further on of KEYS keys, from `column` on. Positions
// behind the last one give its key.
void LoadKeys(Scope scope, uint base, uint column, out uvec4 words[2 * KEYS * LOADS]) {
  const uint chunk = column + 8u * (Lane() & 7u);
  const uint position = base + (4u * Group() + Lane() / 8u) * KEYS;
  uint keys[KEYS];
  [[unroll]] for (uint b = 0u; b < KEYS; ++b) {
    keys[b] = scope.k_begin + min(position + b, scope.max_seen - 1u) * scope.stride;
  }
  if (scope.k_wide) {
    [[unroll]] for (uint b = 0u; b < KEYS; ++b) {
      [[unroll]] for (uint j = 0u; j < 2u; ++j) {
        const uint col = chunk + 64u * j;
        [[unroll]] for (uint i = 0u; i < LOADS; ++i) {
          words[(2u * b + j) * LOADS + i] =
              col < c.head_dim ? k128[(keys[b] + col * kCachedBytes) / 16u + i] : uvec4(0u);
        }
      }
    }
  } else {
    [[unroll]] for (uint b = 0u; b < KEYS; ++b) {
      [[unroll]] for (uint j = 0u; j < 2u; ++j) {
        const uint col = chunk + 64u * j;
        [[unroll]] for (uint i = 0u; i < LOADS; ++i) {
          const uint at = keys[b] + col * kCachedBytes + 16u * i;
          words[(2u * b + j) * LOADS + i] =
              col < c.head_dim ? AnyK(at) : uvec4(0u);
        }
      }
    }
  }
}
// Chunk 8 * (lane % 16) from column `column` on of positions 2 * group + lane / 16 and every
// sixteenth behind it. Those behind the last position are of the last one.
void LoadValues(Scope scope, uint base, uint column, out uvec4 words[VALUES * LOADS]) {
  const uint col = column + 8u * (Lane() & 15u);
  const uint position = base + 2u * Group() + Lane() / 16u;
  uint rows[VALUES];
  [[unroll]] for (uint i = 0u; i < VALUES; ++i) {
    rows[i] = scope.v_begin + min(position + 16u * i, scope.max_seen - 1u) * scope.stride;
  }
  if (scope.v_wide) {
    [[unroll]] for (uint i = 0u; i < VALUES; ++i) {
      [[unroll]] for (uint j = 0u; j < LOADS; ++j) {
        words[i * LOADS + j] =
            col < c.head_dim ? v128[(rows[i] + col * kCachedBytes) / 16u + j] : uvec4(0u);
      }
    }
  } else {
    [[unroll]] for (uint i = 0u; i < VALUES; ++i) {
      [[unroll]] for (uint j = 0u; j < LOADS; ++j) {
        const uint at = rows[i] + col * kCachedBytes + 16u * j;
        words[i * LOADS + j] =
            col < c.head_dim ? AnyV(at) : uvec4(0u);
      }
    }
  }
}
// The eight values that LOADS words from words[LOADS * chunk] on hold.
vec4 Low(uvec4 first) {
#ifdef HALF
  return vec4(unpackHalf2x16(first.x), unpackHalf2x16(first.y));
#else
  return uintBitsToFloat(first);
#endif
}
vec4 High(uvec4 last) {
#ifdef HALF
  return vec4(unpackHalf2x16(last.z), unpackHalf2x16(last.w));
#else
  return uintBitsToFloat(last);
#endif
}

// Sums of two keys' products over eight lanes, in a tree, lane l with l ^ 4, 2, 1: of the first key
// in the lower four lanes and of the second in the others. Every invocation of the workgroup comes
// here.
float EightSum(float a, float b) {
  const uint lane = Lane();
  const bool upper = (lane & 4u) != 0u;
  if (gl_SubgroupSize >= 8u) {
    float sum = Add(upper ? b : a, subgroupShuffleXor(upper ? a : b, 4u));
    sum = Add(sum, subgroupShuffleXor(sum, 2u));
    return Add(sum, subgroupShuffleXor(sum, 1u));
  }
  // Behind the scores.
  const uint first = 256u * 3u;
  room[first + Thread()].xy = vec2(a, b);
  barrier();
  const uint mine = first + (Thread() & ~7u);
  const uint k = upper ? 1u : 0u;
  const float even = Add(Add(room[mine][k], room[mine + 4u][k]),
                         Add(room[mine + 2u][k], room[mine + 6u][k]));
  const float odd = Add(Add(room[mine + 1u][k], room[mine + 5u][k]),
                        Add(room[mine + 3u][k], room[mine + 7u][k]));
  barrier();
  return Add(even, odd);
}

// Adds the products of chunk j of `words`, at `column`, to the sums of each query and key.
void AddChunk(uvec4 words[2 * KEYS * LOADS], uint j, uint column,
              inout float sums[KEYS * QUERIES]) {
  if (column >= c.head_dim) return;
  vec4 low[KEYS];
  vec4 high[KEYS];
  [[unroll]] for (uint b = 0u; b < KEYS; ++b) {
    low[b] = Low(words[(2u * b + j) * LOADS]);
    high[b] = High(words[(2u * b + j) * LOADS + LOADS - 1u]);
  }
  [[unroll]] for (uint n = 0u; n < QUERIES; ++n) {
    const uint at = QueryAt(n, column / 4u + 2u * (Lane() & 7u));
    const vec4 q_low = queries[at];
    const vec4 q_high = queries[at + 8u];
    [[unroll]] for (uint b = 0u; b < KEYS; ++b) {
      float sum = sums[KEYS * n + b];
      sum = Fma(low[b].x, q_low.x, sum);
      sum = Fma(low[b].y, q_low.y, sum);
      sum = Fma(low[b].z, q_low.z, sum);
      sum = Fma(low[b].w, q_low.w, sum);
      sum = Fma(high[b].x, q_high.x, sum);
      sum = Fma(high[b].y, q_high.y, sum);
      sum = Fma(high[b].z, q_high.z, sum);
      sums[KEYS * n + b] = Fma(high[b].w, q_high.w, sum);
    }
  }
}

void WriteScore(uint n, float sums[KEYS * QUERIES]) {
  const float product = EightSum(sums[KEYS * n], sums[KEYS * n + 1u]);
  if ((Lane() & 3u) == 0u) {
    const uint at = n * kSplit + Thread() / 4u;
    room[at >> 2][at & 3u] = Mul(product, c.scale);
  }
}
// Into the room: the scores of all queries and of the split from `base` on, of which those behind
// the last position are of the last one. Eight lanes share a key. `words`: LoadKeys() of column 0.
void Score(Scope scope, uint base, uvec4 words[2 * KEYS * LOADS]) {
  float sums[KEYS * QUERIES];
  [[unroll]] for (uint i = 0u; i < KEYS * QUERIES; ++i) sums[i] = 0.0;
  AddChunk(words, 0u, 0u, sums);
  AddChunk(words, 1u, 64u, sums);
  if (c.head_dim > 128u) {
    uvec4 others[2 * KEYS * LOADS];
    LoadKeys(scope, base, 128u, others);
    AddChunk(others, 0u, 128u, sums);
    AddChunk(others, 1u, 192u, sums);
  }
  // Barriers lie between them, over which glslc unrolls no loop.
  WriteScore(0u, sums);
  WriteScore(1u, sums);
#if QUERIES > 2
  WriteScore(2u, sums);
  WriteScore(3u, sums);
#endif
#if QUERIES > 4
  WriteScore(4u, sums);
  WriteScore(5u, sums);
  WriteScore(6u, sums);
  WriteScore(7u, sums);
#endif
}

// The score of the position, and its weight, which this leaves for Weigh().
float ScoreAt(uint position, uint live) {
  const uint at = Group() * kSplit + position;
  return position < live ? room[at >> 2][at & 3u] : -Infinity();
}
float WeightAt(uint position, uint live, float score, float top) {
  const float weight = position < live ? Exp(Sub(score, top)) : 0.0;
  if (Group() < QUERIES) {
    weights[position * (QUERIES / QUERIES_AT_ONCE) + Group() / QUERIES_AT_ONCE]
           [Group() % QUERIES_AT_ONCE] = weight;
  }
  return weight;
}
// The weights of the query of this group of lanes, from its scores. Of the split's positions the
// first `live` are seen.
void Softmax(uint live, inout Found found) {
  const uint lane = Lane();
  if (Group() >= QUERIES) live = 0u;
  const float a = ScoreAt(lane, live);
  const float b = ScoreAt(lane + 32u, live);
  found.top = LaneMax(max(a, b));
  found.sum = LaneSum(
      Add(WeightAt(lane, live, a, found.top), WeightAt(lane + 32u, live, b, found.top)));
}

// sums[2 n], sums[2 n + 1]: the chunk of query n, of every sixteenth position. `edge`: not all
// queries see all of them.
void Weigh(uvec4 words[VALUES * LOADS], uint base, bool edge, inout vec4 sums[2 * QUERIES]) {
  const uint first = 2u * Group() + Lane() / 16u;
  [[unroll]] for (uint i = 0u; i < VALUES; ++i) {
    const uint position = first + 16u * i;
    const vec4 low = Low(words[i * LOADS]);
    const vec4 high = High(words[i * LOADS + LOADS - 1u]);
    [[unroll]] for (uint n = 0u; n < QUERIES; ++n) {
      if (!edge || base + position < seen_by[n]) {
        const vec4 weight = vec4(weights[position * (QUERIES / QUERIES_AT_ONCE) +
                                         n / QUERIES_AT_ONCE][n % QUERIES_AT_ONCE]);
        sums[2u * n] = Fma4(weight, low, sums[2u * n]);
        sums[2u * n + 1u] = Fma4(weight, high, sums[2u * n + 1u]);
      }
    }
  }
}

// Columns 4 * lane ... of the query of this group of lanes: lanes l and l ^ 16 together, then the
// groups of lanes in their order. Every invocation of the workgroup comes here. One pass is for
// queries first ... first + QUERIES_AT_ONCE - 1.
void GatherSome(uint first, vec4 sums[2 * QUERIES], inout vec4 all) {
  const uint lane = Lane();
  const bool upper = lane >= 16u;
  const uint to = Group() * 128u + 2u * (lane & 15u);
  if (gl_SubgroupSize >= 32u) {
    [[unroll]] for (uint i = 0u; i < QUERIES_AT_ONCE; ++i) {
      const vec4 low = sums[2u * (first + i)];
      const vec4 high = sums[2u * (first + i) + 1u];
      // The upper lanes keep the second half.
      const vec4 kept = upper ? high : low;
      room[to + i * 32u + (upper ? 1u : 0u)] =
          Add4(kept, subgroupShuffleXor(upper ? low : high, 16u));
    }
  } else {
    if (upper) {
      [[unroll]] for (uint i = 0u; i < QUERIES_AT_ONCE; ++i) {
        room[to + i * 32u] = sums[2u * (first + i)];
        room[to + i * 32u + 1u] = sums[2u * (first + i) + 1u];
      }
    }
    barrier();
    if (!upper) {
      [[unroll]] for (uint i = 0u; i < QUERIES_AT_ONCE; ++i) {
        room[to + i * 32u] = Add4(sums[2u * (first + i)], room[to + i * 32u]);
        room[to + i * 32u + 1u] = Add4(sums[2u * (first + i) + 1u], room[to + i * 32u + 1u]);
      }
    }
  }
  barrier();
  if (Group() >= first && Group() < first + QUERIES_AT_ONCE) {
    const uint at = (Group() - first) * 32u + lane;
    all = room[at];
    [[unroll]] for (uint group = 1u; group < THREADS / 32; ++group) {
      all = Add4(all, room[group * 128u + at]);
    }
  }
  barrier();
}
vec4 Gather(vec4 sums[2 * QUERIES]) {
  vec4 all = vec4(0.0);
  GatherSome(0u, sums, all);
#if QUERIES > QUERIES_AT_ONCE
  GatherSome(4u, sums, all);
#endif
  return all;
}

vec4 WeighAll(Scope scope, uint base, uvec4 words[VALUES * LOADS]) {
  vec4 sums[2 * QUERIES];
  [[unroll]] for (uint i = 0u; i < 2u * QUERIES; ++i) sums[i] = vec4(0.0);
  if (base + kSplit <= scope.min_seen) {
    Weigh(words, base, false, sums);
  } else {
    Weigh(words, base, true, sums);
  }
  return Gather(sums);
}

// The split of positions from `base` on.
void Attend(Scope scope, Query query, uint base, inout Found found) {
  uvec4 keys[2 * KEYS * LOADS];
  LoadKeys(scope, base, 0u, keys);
  Score(scope, base, keys);
  barrier();
  Softmax(max(query.seen, base) - base, found);
  barrier();
  uvec4 values[VALUES * LOADS];
  LoadValues(scope, base, 0u, values);
  found.near = WeighAll(scope, base, values);
  if (c.head_dim > 128u) {
    uvec4 others[VALUES * LOADS];
    LoadValues(scope, base, 128u, others);
    found.far = WeighAll(scope, base, others);
  }
}

// What earlier positions came to and what later ones did.
void Merge(inout Found to, Found later) {
  const float top = max(to.top, later.top);
  const float factor = Exp(Sub(to.top, top));
  const float later_factor = Exp(Sub(later.top, top));
  to.top = top;
  to.sum = Fma(later.sum, later_factor, Mul(to.sum, factor));
  to.near = Fma4(later.near, vec4(later_factor), Mul4(to.near, vec4(factor)));
  to.far = Fma4(later.far, vec4(later_factor), Mul4(to.far, vec4(factor)));
}

void WriteFour(Query query, uint column, vec4 sums, float sum) {
  if (column >= c.head_dim) return;
  const uint to = c.out_at / 4u + (query.token * c.heads + query.head) * c.head_dim + column;
  precise vec4 values = sums / vec4(sum);
  out_values[to] = values.x;
  out_values[to + 1u] = values.y;
  out_values[to + 2u] = values.z;
  out_values[to + 3u] = values.w;
}
void WriteOut(Query query, Found found) {
  if (!query.here) return;
  WriteFour(query, 4u * Lane(), found.near, found.sum);
  WriteFour(query, 128u + 4u * Lane(), found.far, found.sum);
}

#ifdef SPLIT
shared uint is_last;
// Partials that a lane loads before it waits for them.
#define AT_ONCE 16

// Where a query's part of unit `unit` lies.
uint Entry(Query query, uint unit) {
  return (unit * c.tokens + query.token) * c.heads + query.head;
}
uint TopsAt() {
  return c.partials_at / 8u + gl_NumWorkGroups.z * c.tokens * c.heads * c.head_dim / 2u;
}

// Where columns 4 * lane ..., or those 128 further on, of an entry lie.
uint OutputAt(uint entry, uint column) {
  return c.partials_at / 16u + (entry * c.head_dim + column) / 4u;
}

void WritePartial(Query query, uint unit, Found found) {
  if (!query.here) return;
  const uint entry = Entry(query, unit);
  const uint column = 4u * Lane();
  if (column < c.head_dim) outputs[OutputAt(entry, column)] = found.near;
  if (column + 128u < c.head_dim) outputs[OutputAt(entry, column + 128u)] = found.far;
  if (Lane() == 0u) tops_and_sums[TopsAt() + entry] = vec2(found.top, found.sum);
}

// True in the last of `count` workgroups that come with this counter, which is then 0 again. It sees
// what all of them have written.
bool ComesLast(uint counter, uint count) {
  memoryBarrierBuffer();
  barrier();
  if (Thread() == 0u) {
    const uint at = c.counters_at / 4u + counter;
    const bool last = atomicAdd(counters[at], 1u) + 1u == count;
    if (last) atomicExchange(counters[at], 0u);
    is_last = last ? 1u : 0u;
  }
  barrier();
  memoryBarrierBuffer();
  return is_last != 0u;
}

// Adds four columns of `count` units from `first` on, with the factors that lie in the room.
vec4 MergeSome(Query query, uint first, uint step, uint count, bool none_before, uint factors_at,
               uint column, vec4 sums) {
  vec4 found[AT_ONCE];
  [[unroll]] for (uint i = 0u; i < AT_ONCE; ++i) {
    found[i] = i < count && column < c.head_dim
                   ? outputs[OutputAt(Entry(query, first + i * step), column)]
                   : vec4(0.0);
  }
  [[unroll]] for (uint i = 0u; i < AT_ONCE; ++i) {
    if (i < count) {
      const vec4 unit = room[factors_at + i];
      const vec4 merged = Fma4(found[i], vec4(unit.w), Mul4(sums, vec4(unit.z)));
      sums = i == 0u && none_before ? found[i] : merged;
    }
  }
  return sums;
}

// Merges what lies at units first, first + step, ... (`count` of them, of `positions` positions each)
// as Merge() does: a lane finds the factors of a unit, then each sums its own columns.
Found MergePartials(Query query, uint first, uint step, uint count, uint positions) {
  const uint lane = Lane();
  const uint mine = 32u * Group();
  const uint base = first / step * positions;
  // Of the units, the query sees something of these.
  const uint live =
      min(count, query.seen > base ? (query.seen - base + positions - 1u) / positions : 0u);
  Found all = Nothing();
  for (uint begin = 0u; begin < count; begin += 32u) {
    const uint here = min(32u, max(live, begin) - begin);
    vec2 top_and_sum = vec2(0.0);
    if (lane < here) {
      top_and_sum = tops_and_sums[TopsAt() + Entry(query, first + (begin + lane) * step)];
    }
    room[mine + lane].xy = top_and_sum;
    barrier();
    float before = all.top;
    [[unroll]] for (uint i = 0u; i < 32u; ++i) {
      const float other = room[mine + i].x;
      if (i < min(lane, here)) before = max(before, other);
    }
    const float top = max(before, top_and_sum.x);
    room[mine + lane].z = Exp(Sub(before, top));
    room[mine + lane].w = Exp(Sub(top_and_sum.x, top));
    barrier();
    for (uint i = 0u; i < here; ++i) {
      const vec4 unit = room[mine + i];
      all.top = max(all.top, unit.x);
      all.sum = begin + i == 0u ? unit.y : Fma(unit.y, unit.w, Mul(all.sum, unit.z));
    }
    for (uint some = 0u; some < here; some += AT_ONCE) {
      const uint units = min(AT_ONCE, here - some);
      all.near = MergeSome(query, first + (begin + some) * step, step, units, begin + some == 0u,
                           mine + some, 4u * lane, all.near);
      if (c.head_dim > 128u) {
        all.far = MergeSome(query, first + (begin + some) * step, step, units, begin + some == 0u,
                            mine + some, 128u + 4u * lane, all.far);
      }
    }
    barrier();
  }
  return all;
}
#endif

void main() {
  Scope scope;
  scope.fan = c.heads / c.kv_heads;
  // The last tokens, which see the most, begin first.
  const uint blocks = (c.tokens * scope.fan + QUERIES - 1u) / QUERIES;
#ifdef SPLIT
  const uint block = blocks - 1u - gl_WorkGroupID.y;
#else
  const uint number = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  if (number >= blocks) return;
  const uint block = blocks - 1u - number;
#endif
  scope.kv_head = gl_WorkGroupID.x;
  scope.first_query = block * QUERIES;
  const uint last_query = min(scope.first_query + QUERIES, c.tokens * scope.fan) - 1u;
  scope.max_seen = c.first_position + TokenOf(last_query, scope.fan) + 1u;
  scope.min_seen = c.first_position + TokenOf(scope.first_query, scope.fan) + 1u;
  scope.stride = c.kv_heads * c.head_dim * kCachedBytes;
  scope.k_begin = c.k_at + scope.kv_head * c.head_dim * kCachedBytes;
  scope.v_begin = c.v_at + scope.kv_head * c.head_dim * kCachedBytes;
  scope.k_wide = ((scope.k_begin | scope.stride) & 15u) == 0u;
  scope.v_wide = ((scope.v_begin | scope.stride) & 15u) == 0u;
#ifdef SPLIT
  const uint unit = gl_WorkGroupID.z;
  const uint unit_positions = c.splits_per_group * kSplit;
  const uint begin = unit * unit_positions;
  const uint end = min(scope.max_seen, begin + unit_positions);
#else
  const uint begin = 0u;
  const uint end = scope.max_seen;
#endif
  const Query query = QueryOf(scope, Group());
  if (Group() < QUERIES) {
    if (Lane() == 0u) seen_by[Group()] = query.seen;
    const uint from = c.q_at / 4u + (query.token * c.heads + query.head) * c.head_dim;
    // As many as Score() reads.
    for (uint i = Lane(); i < (c.head_dim + 63u) / 64u * 16u; i += 32u) {
      const uint at = from + 4u * i;
      queries[QueryAt(Group(), i)] = query.here && 4u * i < c.head_dim
                                         ? vec4(q[at], q[at + 1u], q[at + 2u], q[at + 3u])
                                         : vec4(0.0);
    }
  }
  barrier();

  Found run = Nothing();
#ifdef SPLIT
  for (uint base = begin; base < end; base += kSplit) {
    Found found = Nothing();
    Attend(scope, query, base, found);
    if (base == begin) {
      run = found;
    } else if (base < query.seen) {
      Merge(run, found);
    }
  }
  const uint units = (scope.max_seen + unit_positions - 1u) / unit_positions;
  const bool by_split = c.splits_per_group == 1u;
  const uint runs = by_split ? (gl_NumWorkGroups.z + kRun - 1u) / kRun : 0u;
  const uint counter = (block * c.kv_heads + scope.kv_head) * (runs + 1u);
  // First the splits of a run meet, then the runs.
  uint slot = unit;
  for (uint level = by_split ? 0u : 1u; level < 2u; ++level) {
    WritePartial(query, slot, run);
    if (unit >= units) return;
    const uint first = level == 0u ? unit / kRun * kRun : 0u;
    const uint step = level == 1u && by_split ? kRun : 1u;
    const uint count = level == 0u ? min(kRun, units - first) : (units + step - 1u) / step;
    if (count > 1u) {
      if (!ComesLast(counter + (level == 0u ? 1u + unit / kRun : 0u), count)) return;
      run = MergePartials(query, first, step, count, level == 0u ? kSplit : kRun * kSplit);
    }
    if (level == 0u && units <= kRun) break;
    slot = first;
  }
  WriteOut(query, run);
#else
  Found all = Nothing();
  for (uint base = begin; base < end; base += kSplit) {
    Found found = Nothing();
    Attend(scope, query, base, found);
    if (base < query.seen) {
      if (base % (kRun * kSplit) != 0u) {
        Merge(run, found);
      } else {
        run = found;
      }
      // The end of a run, or of what there is.
      if ((base / kSplit + 1u) % kRun == 0u || base + kSplit >= query.seen) {
        if (base < kRun * kSplit) {
          all = run;
        } else {
          Merge(all, run);
        }
      }
    }
  }
  WriteOut(query, all);
#endif
}
