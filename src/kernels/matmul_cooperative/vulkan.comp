// matmul_cooperative (matmul_cooperative.h): workgroup (x, y) takes rows y * TILE_ROWS... of tokens
// x * TILE_TOKENS... . With EXPERTS rows x * TILE_ROWS... of all pairs of expert y, TILE_TOKENS at
// once: the tokens of a tile are then those of the pairs.
//
// A step is 32 columns. Its part of both tiles lies in shared memory as f16, in one of two buffers:
// while the subgroups multiply the one, the other is filled from registers, into which the values
// have been on their way from memory for two steps. The eight columns that an invocation brings
// stand in another order there (PackEight), which is the same for weights and activations.
//
// Wide loads serve pairs of steps. In the chunks of quantised rows the steps of a pair are STEP_COLS
// apart, so that a lane's integers for both lie side by side.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix : require

#define THREADS (32 * GROUPS_OF_ROWS * GROUPS_OF_TOKENS)
#include "kernels/vulkan/dots_step.glsl"

layout(push_constant, std430) uniform Constants {
  uint rows;
  uint cols;
#ifdef EXPERTS
  uint experts;
  uint pairs;
  uint fan;
  uint rows_per_group;
  uint by_expert;
  uint weights_at;
  uint ids_at;
#else
  uint tokens;
  uint rows_per_group;
  uint tokens_per_group;
  uint add_residual;
  uint weights_at;
#endif
  uint x_at;
  uint out_at;
#ifdef RESIDUAL
  uint residual_at;
#endif
}
c;

#define M(name) weights_##name
#define MATRIX_BINDING 0
#include "kernels/vulkan/matrix.glsl"
#ifdef EXPERTS
layout(std430, set = 0, binding = 1) readonly buffer Ids { uint ids[]; };
#define X_BINDING 2
#define OUT_BINDING 3
#else
#define X_BINDING 1
#define OUT_BINDING 2
#endif
layout(std430, set = 0, binding = X_BINDING) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = X_BINDING) readonly buffer XInFours { vec4 x4[]; };
layout(std430, set = 0, binding = OUT_BINDING) writeonly buffer Out { float out_values[]; };
#ifdef RESIDUAL
layout(std430, set = 0, binding = 3) readonly buffer Residual { float residual[]; };
#endif

const float kLargestHalf = 65504.0;

// --- The tile

#ifdef EXPERTS
#include "kernels/vulkan/pairs.glsl"

uint Expert() { return gl_WorkGroupID.y; }
uint FirstTileRow() { return gl_WorkGroupID.x * TILE_ROWS; }
uint MatrixAt() { return c.weights_at + Expert() * c.rows * RowBytes(c.cols); }

// The expert's pairs, of which an invocation finds every THREADS-th: those of the invocations
// before it come before its own.
uint pairs_before;
uint own_pairs;
uint all_pairs;
shared uint pairs_of_group[THREADS / 32];
void CountPairs() {
  own_pairs = 0u;
  for (uint pair = Thread(); pair < c.pairs; pair += THREADS) {
    if (IdOf(pair) == Expert()) ++own_pairs;
  }
  uint up_to = own_pairs;
  [[unroll]] for (uint step = 1u; step < 32u; step *= 2u) {
    const uint of_others = subgroupShuffle(up_to, (Lane() - step) & 31u);
    if (Lane() >= step) up_to += of_others;
  }
  if (Lane() == 31u) pairs_of_group[Group()] = up_to;
  barrier();
  pairs_before = up_to - own_pairs;
  all_pairs = 0u;
  for (uint group = 0u; group < THREADS / 32; ++group) {
    if (group < Group()) pairs_before += pairs_of_group[group];
    all_pairs += pairs_of_group[group];
  }
}

// Those of a tile.
shared uint list[TILE_TOKENS];
uint tile_pairs;
void ListPairs(uint first) {
  tile_pairs = min(all_pairs - first, TILE_TOKENS);
  if (pairs_before < first + TILE_TOKENS && pairs_before + own_pairs > first) {
    uint number = pairs_before;
    for (uint pair = Thread(); pair < c.pairs; pair += THREADS) {
      if (IdOf(pair) != Expert()) continue;
      // As unsigned, one of an earlier tile is as far off as one of a later.
      if (number - first < TILE_TOKENS) list[number - first] = pair;
      ++number;
    }
  }
  barrier();
}
bool HasToken(uint token) { return token < tile_pairs; }
// In floats; of the last token where there are fewer.
uint TileTokenAt(uint token) { return TokenAt(list[min(token, tile_pairs - 1u)]); }
uint OutAt(uint token) { return list[token] * c.rows; }
#else
uint FirstTileRow() { return gl_WorkGroupID.y * TILE_ROWS; }
uint MatrixAt() { return c.weights_at; }
uint FirstTileToken() { return gl_WorkGroupID.x * TILE_TOKENS; }
bool HasToken(uint token) { return FirstTileToken() + token < c.tokens; }
uint TileTokenAt(uint token) {
  return c.x_at / 4u + min(FirstTileToken() + token, c.tokens - 1u) * c.cols;
}
uint OutAt(uint token) { return (FirstTileToken() + token) * c.rows; }
#endif

// --- Shared memory

// In fours of words: a row or token of a step, 32 halves and 8 that keep rows apart in the banks;
// behind the rows of a tile the tokens of the other.
#define STRIDE 5
#define STEP_QUADS ((TILE_ROWS + TILE_TOKENS) * STRIDE)
// A subgroup's sums: some matrices of 16 rows beside each other, and some of 16 tokens below each
// other.
#define MATRICES_OF_ROWS (TILE_ROWS / 16 / GROUPS_OF_ROWS)
#define MATRICES_OF_TOKENS (TILE_TOKENS / 16 / GROUPS_OF_TOKENS)
#define OUT_STRIDE (MATRICES_OF_ROWS * 4 + 1)
#define OUT_QUADS (16 * OUT_STRIDE)
#define ALL_OUT_QUADS (GROUPS_OF_ROWS * GROUPS_OF_TOKENS * OUT_QUADS)
shared uvec4 stage[2 * STEP_QUADS > ALL_OUT_QUADS ? 2 * STEP_QUADS : ALL_OUT_QUADS];
// What the sums of a token are multiplied with.
shared float token_factors[TILE_TOKENS];
shared uint any_beyond;

// --- From memory

// An invocation brings eight columns, `Quarter()` of a step, of so many rows and tokens.
#define ROWS_EACH (TILE_ROWS * 4 / THREADS)
#define TOKENS_EACH (TILE_TOKENS * 4 / THREADS)
uint Quarter() { return Thread() & 3u; }
uint OwnRow(uint i) { return Thread() / 4u + i * (THREADS / 4); }

uint rows_at[ROWS_EACH];      // In bytes.
uint tokens_at[TOKENS_EACH];  // In floats.
float scales_of_tokens[TOKENS_EACH];
float largest[TOKENS_EACH];
// Activations of an even and of an odd step.
vec4 held_x[2 * 2 * TOKENS_EACH];
// Weights of a pair of steps, and of the next pair.
#if defined(TYPE_Q8_0)
#define HELD uvec4
#define HELD_EACH 1
#elif defined(TYPE_Q4_0)
#define HELD uvec2
#define HELD_EACH 1
#elif defined(TYPE_F32)
#define HELD uvec4
#define HELD_EACH 4
#else
#define HELD uvec4
#define HELD_EACH 2
#endif
HELD held[HELD_EACH * ROWS_EACH];
HELD coming[HELD_EACH * ROWS_EACH];
#ifdef QUANTISED
uint held_scales[ROWS_EACH];
uint coming_scales[ROWS_EACH];
#endif

#ifdef QUANTISED
#define PAIRS_OF_PART (CHUNK_STEPS / 2u)
#define PAIRS_OF_CHUNK (kChunkCols / 64u)
// Rows that begin at multiples of 16 bytes have 256 columns, or a multiple: behind the chunks four
// pairs share each 256.
uint ChunkedPairs() { return ChunkedCols(c.cols) / 64u; }
uint ColOf(uint pair, uint s) {
  if (pair >= ChunkedPairs()) return pair / 4u * 256u + s * 128u + pair % 4u * 32u;
  const uint in_chunk = pair % PAIRS_OF_CHUNK;
  return pair / PAIRS_OF_CHUNK * kChunkCols + (in_chunk % PAIRS_OF_PART * 2u + s) * STEP_COLS +
         in_chunk / PAIRS_OF_PART * 32u;
}
// The scale at a byte, and that of the block four further on.
uint TwoScales(uint at) {
  const uint shift = (at & 2u) * 8u;
  return (weights_w32[at / 4u] >> shift & 0xFFFFu) | weights_w32[at / 4u + 2u] >> shift << 16;
}
#else
uint ColOf(uint pair, uint s) { return pair * 64u + s * 32u; }
#endif

// The first columns of the two fours that an invocation brings of a step.
#ifdef TYPE_Q4_0
uint LowCol(uint step_col) { return step_col + Quarter() * 4u + (step_col & 32u) / 2u; }
uint HighCol(uint step_col) { return step_col + Quarter() * 4u + 16u - (step_col & 32u) / 2u; }
#else
uint LowCol(uint step_col) { return step_col + Quarter() * 8u; }
uint HighCol(uint step_col) { return LowCol(step_col) + 4u; }
#endif

// Begins to read a step's activations, which go into set s, and a pair's weights.
void FetchX(uint s, uint col) {
  [[unroll]] for (uint i = 0u; i < TOKENS_EACH; ++i) {
    held_x[s * (2 * TOKENS_EACH) + 2u * i] = x4[(tokens_at[i] + LowCol(col)) / 4u];
    held_x[s * (2 * TOKENS_EACH) + 2u * i + 1u] = x4[(tokens_at[i] + HighCol(col)) / 4u];
  }
}
void FetchWeights(uint pair) {
#ifdef QUANTISED
  const uint chunk = pair / PAIRS_OF_CHUNK;
  const uint part = pair % PAIRS_OF_CHUNK / PAIRS_OF_PART;
  const uint in_part = pair % PAIRS_OF_PART;
  const uint lane = part * LANES_OF_BLOCK + Quarter() * (LANES_OF_BLOCK / 4u);
  const bool chunked = pair < ChunkedPairs();
  const uint col = ColOf(pair, 0u);
#endif
  [[unroll]] for (uint i = 0u; i < ROWS_EACH; ++i) {
#if defined(TYPE_Q8_0)
    if (chunked) {
      const uint from = (rows_at[i] + chunk * 512u) / 8u + lane * 2u + in_part;
      coming[i] = uvec4(weights_w64[from], weights_w64[from + 2u]);
      coming_scales[i] =
          weights_w32[(rows_at[i] + c.cols + chunk * 32u) / 4u + part * 2u + in_part];
    } else {
      const uint from = (rows_at[i] + col) / 8u + Quarter();
      coming[i] = uvec4(weights_w64[from], weights_w64[from + 16u]).xzyw;
      coming_scales[i] = TwoScales(rows_at[i] + c.cols + col / 16u);
    }
#elif defined(TYPE_Q4_0)
    if (chunked) {
      coming[i] = weights_w64[(rows_at[i] + chunk * 512u) / 8u + lane * 2u + in_part];
      coming_scales[i] =
          weights_w32[(rows_at[i] + c.cols / 2u + chunk * 64u) / 4u + part * 2u + in_part];
    } else {
      const uint from = (rows_at[i] + col / 2u) / 4u + Quarter();
      coming[i] = uvec2(weights_w32[from], weights_w32[from + 16u]);
      coming_scales[i] = TwoScales(rows_at[i] + c.cols / 2u + col / 16u);
    }
#elif defined(TYPE_F32)
    const uint from = rows_at[i] / 16u + pair * 16u + Quarter() * 2u;
    coming[4u * i] = weights_w128[from];
    coming[4u * i + 1u] = weights_w128[from + 1u];
    coming[4u * i + 2u] = weights_w128[from + 8u];
    coming[4u * i + 3u] = weights_w128[from + 9u];
#else
    const uint from = rows_at[i] / 16u + pair * 8u + Quarter();
    coming[2u * i] = weights_w128[from];
    coming[2u * i + 1u] = weights_w128[from + 4u];
#endif
  }
}
void TakeWeights() {
  [[unroll]] for (uint i = 0u; i < HELD_EACH * ROWS_EACH; ++i) held[i] = coming[i];
#ifdef QUANTISED
  [[unroll]] for (uint i = 0u; i < ROWS_EACH; ++i) held_scales[i] = coming_scales[i];
#endif
}

// --- Into shared memory

uint PackTwo(float a, float b) { return packFloat2x16(f16vec2(a, b)); }

// In the order in which the integers of the type come out of their words in pairs.
uvec4 PackEight(vec4 low, vec4 high) {
#if defined(QUANTISED)
  return uvec4(PackTwo(low.x, low.z), PackTwo(low.y, low.w), PackTwo(high.x, high.z),
               PackTwo(high.y, high.w));
#else
  return uvec4(PackTwo(low.x, low.y), PackTwo(low.z, low.w), PackTwo(high.x, high.y),
               PackTwo(high.z, high.w));
#endif
}
vec4 Limited(vec4 values) { return clamp(values, vec4(-kLargestHalf), vec4(kLargestHalf)); }

#ifdef QUANTISED
// A small integer in the low bits of the half 1024 is that many units above it.
uint TwoProducts(uint integers, f16vec2 scale) {
  const f16vec2 values = unpackFloat2x16(integers | 0x64006400u);
#ifdef TYPE_Q8_0
  return packFloat2x16((values - f16vec2(1152.0hf)) * scale);
#else
  return packFloat2x16((values - f16vec2(1032.0hf)) * scale);
#endif
}
#endif

// The weights of row i of what is held for step s of the pair.
uvec4 HeldWeights(uint i, uint s) {
#ifdef QUANTISED
  const f16vec2 scales = unpackFloat2x16(held_scales[i]);
  const f16vec2 scale = f16vec2(s == 0u ? scales.x : scales.y);
#if defined(TYPE_Q8_0)
  const uint low = s == 0u ? held[i].x : held[i].y;
  const uint high = s == 0u ? held[i].z : held[i].w;
  return uvec4(
      TwoProducts(low & 0x00FF00FFu, scale), TwoProducts(low >> 8 & 0x00FF00FFu, scale),
      TwoProducts(high & 0x00FF00FFu, scale), TwoProducts(high >> 8 & 0x00FF00FFu, scale));
#else
  const uint bits = s == 0u ? held[i].x : held[i].y;
  return uvec4(
      TwoProducts(bits & 0x000F000Fu, scale), TwoProducts(bits >> 8 & 0x000F000Fu, scale),
      TwoProducts(bits >> 4 & 0x000F000Fu, scale), TwoProducts(bits >> 12 & 0x000F000Fu, scale));
#endif
#elif defined(TYPE_F32)
  return PackEight(Limited(Floats(held[4u * i + 2u * s])),
                   Limited(Floats(held[4u * i + 2u * s + 1u])));
#elif defined(TYPE_BF16)
  const uvec4 eight = held[2u * i + s];
  return PackEight(Limited(Floats(eight.xy)), Limited(Floats(eight.zw)));
#else
  return held[2u * i + s];
#endif
}

// The same at any alignment and up to the last column, behind which there are zeros.
vec4 AnyFourWeights(uint row_at, uint col) {
  if (col >= c.cols) return vec4(0.0);
  const uint step_col = col / STEP_COLS * STEP_COLS;
#ifdef TYPE_Q4_0
  const uint lane = (col - step_col) / 32u * 4u + Quarter();
#else
  const uint lane = (col - step_col) / 4u;
#endif
#ifdef QUANTISED
  const uint bits = weights_Word(row_at + QuantAt(c.cols, step_col, lane));
#ifdef TYPE_Q4_0
  const vec4 integers = Integers(bits, (col - step_col) / 4u == HighFour(lane));
#else
  const vec4 integers = Integers(bits);
#endif
  return Limited(integers * weights_AnyScale(row_at, c.cols, step_col, lane));
#else
  return Limited(weights_AnyValues(row_at, c.cols, step_col, lane));
#endif
}
vec4 AnyFourX(uint token_at, uint col) {
  vec4 four = vec4(0.0);
  if (col < c.cols) four.x = x[token_at + col];
  if (col + 1u < c.cols) four.y = x[token_at + col + 1u];
  if (col + 2u < c.cols) four.z = x[token_at + col + 2u];
  if (col + 3u < c.cols) four.w = x[token_at + col + 3u];
  return four;
}

float LargestOf(vec4 v) { return max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))); }

void PutWeights(uint buffer_at, uint i, uvec4 eight) {
  stage[buffer_at + OwnRow(i) * STRIDE + Quarter()] = eight;
}
void PutX(uint buffer_at, uint i, vec4 low, vec4 high) {
  low *= scales_of_tokens[i];
  high *= scales_of_tokens[i];
  largest[i] = max(largest[i], max(LargestOf(low), LargestOf(high)));
  stage[buffer_at + (TILE_ROWS + OwnRow(i)) * STRIDE + Quarter()] = PackEight(low, high);
}
// What is held for step s.
void Place(uint s) {
  [[unroll]] for (uint i = 0u; i < ROWS_EACH; ++i) {
    PutWeights(s * STEP_QUADS, i, HeldWeights(i, s));
  }
  [[unroll]] for (uint i = 0u; i < TOKENS_EACH; ++i) {
    const uint set = s * (2 * TOKENS_EACH) + 2u * i;
    PutX(s * STEP_QUADS, i, held_x[set], held_x[set + 1u]);
  }
}
// Any step, straight from memory into the first buffer.
void PlaceAny(uint step) {
  const uint low = LowCol(step * 32u);
  const uint high = HighCol(step * 32u);
  [[unroll]] for (uint i = 0u; i < ROWS_EACH; ++i) {
    PutWeights(0u, i,
               PackEight(AnyFourWeights(rows_at[i], low), AnyFourWeights(rows_at[i], high)));
  }
  [[unroll]] for (uint i = 0u; i < TOKENS_EACH; ++i) {
    PutX(0u, i, AnyFourX(tokens_at[i], low), AnyFourX(tokens_at[i], high));
  }
}

// --- Products

#define SUMS (MATRICES_OF_ROWS * MATRICES_OF_TOKENS)
fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> sums[SUMS];

uint FirstRow() { return gl_SubgroupID % GROUPS_OF_ROWS * (MATRICES_OF_ROWS * 16); }
#ifdef EXPERTS
// The tile is often half empty: the subgroups share the tokens that there are.
#define TOKENS_APART (GROUPS_OF_TOKENS * 16)
uint FirstToken() { return gl_SubgroupID / GROUPS_OF_ROWS * 16u; }
#else
#define TOKENS_APART 16
uint FirstToken() { return gl_SubgroupID / GROUPS_OF_ROWS * (MATRICES_OF_TOKENS * 16); }
#endif

// With the subgroup's first `matrices` of tokens.
void MultiplyWith(uint matrices, uint buffer_at) {
  const uint rows_begin = buffer_at + FirstRow() * STRIDE;
  const uint tokens_begin = buffer_at + (TILE_ROWS + FirstToken()) * STRIDE;
  [[unroll]] for (uint k = 0u; k < 2u; ++k) {
    fcoopmatNV<16, gl_ScopeSubgroup, 16, 16> weights[MATRICES_OF_ROWS];
    [[unroll]] for (uint j = 0u; j < MATRICES_OF_ROWS; ++j) {
      coopMatLoadNV(weights[j], stage, rows_begin + j * (16 * STRIDE) + k * 2u, STRIDE, true);
    }
    [[unroll]] for (uint i = 0u; i < matrices; ++i) {
      fcoopmatNV<16, gl_ScopeSubgroup, 16, 16> tokens;
      coopMatLoadNV(tokens, stage, tokens_begin + i * (TOKENS_APART * STRIDE) + k * 2u, STRIDE,
                    false);
      [[unroll]] for (uint j = 0u; j < MATRICES_OF_ROWS; ++j) {
        sums[i * MATRICES_OF_ROWS + j] =
            coopMatMulAddNV(tokens, weights[j], sums[i * MATRICES_OF_ROWS + j]);
      }
    }
  }
}
void MultiplyStep(uint buffer_at) {
#ifdef EXPERTS
  if (!HasToken(TILE_TOKENS / 2u)) {
    MultiplyWith((MATRICES_OF_TOKENS + 1) / 2, buffer_at);
    return;
  }
#endif
  MultiplyWith(MATRICES_OF_TOKENS, buffer_at);
}

void Multiply() {
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) {
    sums[i] = fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>(0.0);
  }
  [[unroll]] for (uint i = 0u; i < TOKENS_EACH; ++i) largest[i] = 0.0;
  const bool aligned = ((c.weights_at | RowBytes(c.cols)) & 15u) == 0u &&
                       ((c.x_at / 4u | c.cols) & 3u) == 0u;
  const uint pairs = aligned ? c.cols / 64u : 0u;
  if (pairs > 0u) {
    // Behind the last pair it is fetched again, and not multiplied.
    const uint last = pairs - 1u;
    FetchWeights(0u);
    FetchX(0u, ColOf(0u, 0u));
    FetchX(1u, ColOf(0u, 1u));
    TakeWeights();
    FetchWeights(min(1u, last));
    Place(0u);
    FetchX(0u, ColOf(min(1u, last), 0u));
    for (uint pair = 0u; pair < pairs; ++pair) {
      const uint next = min(pair + 1u, last);
      const uint after = min(pair + 2u, last);
      barrier();
      Place(1u);
      FetchX(1u, ColOf(next, 1u));
      TakeWeights();
      FetchWeights(after);
      MultiplyStep(0u);
      barrier();
      Place(0u);
      FetchX(0u, ColOf(after, 0u));
      MultiplyStep(STEP_QUADS);
    }
  }
  for (uint step = pairs * 2u; step * 32u < c.cols; ++step) {
    barrier();
    PlaceAny(step);
    barrier();
    MultiplyStep(0u);
  }
}

// True where a token has a number that no half holds. The token's scale is then the power of two
// by which its largest one comes below 2^15.
bool ScaleTokens() {
  if (Thread() == 0u) any_beyond = 0u;
  barrier();
  [[unroll]] for (uint i = 0u; i < TOKENS_EACH; ++i) {
    float top = max(largest[i], subgroupShuffleXor(largest[i], 1u));
    top = max(top, subgroupShuffleXor(top, 2u));
    const uint exponent = floatBitsToUint(top) >> 23;
    if (top > kLargestHalf && exponent < 255u) {
      scales_of_tokens[i] = uintBitsToFloat(268u - exponent << 23);
      token_factors[OwnRow(i)] = uintBitsToFloat(exponent - 14u << 23);
      any_beyond = 1u;
    }
  }
  barrier();
  return any_beyond != 0u;
}

void MultiplyTile() {
  [[unroll]] for (uint i = 0u; i < ROWS_EACH; ++i) {
    rows_at[i] = MatrixAt() + min(FirstTileRow() + OwnRow(i), c.rows - 1u) * RowBytes(c.cols);
  }
  [[unroll]] for (uint i = 0u; i < TOKENS_EACH; ++i) {
    tokens_at[i] = TileTokenAt(OwnRow(i));
    scales_of_tokens[i] = 1.0;
  }
  for (uint i = Thread(); i < TILE_TOKENS; i += THREADS) token_factors[i] = 1.0;
  // Once, and once more with smaller tokens.
  for (uint pass = 0u; pass < 2u; ++pass) {
    Multiply();
    if (!ScaleTokens()) break;
  }

  const uint own = gl_SubgroupID * OUT_QUADS;
  [[unroll]] for (uint i = 0u; i < MATRICES_OF_TOKENS; ++i) {
    [[unroll]] for (uint j = 0u; j < MATRICES_OF_ROWS; ++j) {
      coopMatStoreNV(sums[i * MATRICES_OF_ROWS + j], stage, own + j * 4u, OUT_STRIDE, false);
    }
    barrier();
    for (uint e = Lane(); e < 16u * 16u * MATRICES_OF_ROWS; e += 32u) {
      const uint in_row = e % (16u * MATRICES_OF_ROWS);
      const uint in_token = e / (16u * MATRICES_OF_ROWS);
      const uint row = FirstTileRow() + FirstRow() + in_row;
      const uint token = FirstToken() + i * TOKENS_APART + in_token;
      if (row < c.rows && HasToken(token)) {
        const uvec4 quad = stage[own + in_token * OUT_STRIDE + in_row / 4u];
        float value = uintBitsToFloat(quad[in_row & 3u]) * token_factors[token];
        const uint at = OutAt(token) + row;
#ifdef RESIDUAL
        value = Add(value, residual[c.residual_at / 4u + at]);
#endif
        out_values[c.out_at / 4u + at] = value;
      }
    }
    barrier();
  }
}

void main() {
#ifdef EXPERTS
  if (Expert() == 0u) ClearUnknown();
  CountPairs();
  for (uint first = 0u; first < all_pairs; first += TILE_TOKENS) {
    ListPairs(first);
    MultiplyTile();
  }
#else
  MultiplyTile();
#endif
}
