// void DOTS(...): the products of ROWS rows of a matrix with TOKENS rows of x, by the 32 lanes of a
// group. Included once for each pair of numbers and each matrix M of kernels/vulkan/matrix.glsl; x
// is the array X of floats, X4 in fours.
//
// With LANES_APART each lane keeps its own sum, which LaneSum() has yet to add: for a call that not
// all groups of a workgroup make.
//
// With STEPS_AT_ANY_BYTE what is left behind the chunks of quantised rows is read as at any
// alignment, which takes longer and fewer registers.
//
// A lane adds its columns step by step into one sum for each pair of a row and a token, so that the
// bits of a product do not depend on what else is computed beside it.

#if defined(TYPE_Q4_0) && TOKENS == 1
// A row's chunk takes long enough to decode that the next one had better be on its way meanwhile.
#define AHEAD
#endif
// What a lane takes of x in the step whose first four columns are the vec4 `from`.
#ifdef TYPE_Q4_0
#define PART_AT(from) Placed(X4[(from) + LowFour(lane)], X4[(from) + HighFour(lane)])
#else
#define PART_AT(from) Placed(X4[(from) + lane])
#endif
// Rows `row`, row + 1, ... of the matrix that begins at byte `at`; those behind `last_row` are that
// row again. Token t is the floats from tokens_at[t] on; all these places are equal modulo 4 when
// `cols` is a multiple of 4.
void DOTS(uint at, uint row, uint last_row, uint cols, uint tokens_at[TOKENS],
          out float sums[ROWS * TOKENS]) {
  const uint lane = Lane();
  const uint row_bytes = RowBytes(cols);
  uint rows_at[ROWS];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) rows_at[r] = at + min(row + r, last_row) * row_bytes;
  [[unroll]] for (uint i = 0u; i < ROWS * TOKENS; ++i) sums[i] = 0.0;
  uint col = 0u;
  const bool wide = ((at | row_bytes) & 15u) == 0u && ((tokens_at[0] | cols) & 3u) == 0u;
  if (wide && cols >= kChunkCols) {
#ifdef AHEAD
    // Behind the last chunk it is loaded again, and not used.
    const uint last_col = ChunkedCols(cols) - kChunkCols;
    M(Chunk) coming[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      coming[r] = M(LoadChunk)(rows_at[r], cols, 0u, lane);
    }
#endif
    for (; col + kChunkCols <= cols; col += kChunkCols) {
      M(Chunk) chunks[ROWS];
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
#ifdef AHEAD
        chunks[r] = coming[r];
        coming[r] = M(LoadChunk)(rows_at[r], cols, min(col + kChunkCols, last_col), lane);
#else
        chunks[r] = M(LoadChunk)(rows_at[r], cols, col, lane);
#endif
      }
      [[unroll]] for (uint s = 0u; s < CHUNK_STEPS; ++s) {
        Part parts[TOKENS];
        [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
          parts[t] = PART_AT((tokens_at[t] + col) / 4u + s * (STEP_COLS / 4u));
        }
        [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
          const VALUES values = M(ChunkValues)(chunks[r], s);
          const float scale = M(ChunkScale)(chunks[r], s);
          [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
            sums[r * TOKENS + t] = AddStep(values, scale, parts[t], sums[r * TOKENS + t]);
          }
        }
      }
    }
  }
#if defined(QUANTISED) && !defined(STEPS_AT_ANY_BYTE)
  // Such rows have a multiple of 256 columns, so that this takes the last of them.
  if (wide) {
    for (; col + STEP_COLS <= cols; col += STEP_COLS) {
      VALUES values[ROWS];
      float scales[ROWS];
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        values[r] = M(StepValues)(rows_at[r], cols, col, lane);
        scales[r] = M(StepScale)(rows_at[r], cols, col, lane);
      }
      [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
        const Part part = PART_AT((tokens_at[t] + col) / 4u);
        [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
          sums[r * TOKENS + t] = AddStep(values[r], scales[r], part, sums[r * TOKENS + t]);
        }
      }
    }
  }
#endif
  for (; col < cols; col += STEP_COLS) {
#ifdef TYPE_Q4_0
    const uint low = col + LowFour(lane) * 4u;
    const uint high = col + HighFour(lane) * 4u;
    if (max(low, high) >= cols) continue;
#else
    const uint own = col + 4u * lane;
    if (own >= cols) continue;
#endif
    Part parts[TOKENS];
    [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
#ifdef TYPE_Q4_0
      const uint a = tokens_at[t] + low;
      const uint b = tokens_at[t] + high;
      parts[t] = Placed(vec4(X[a], X[a + 1u], X[a + 2u], X[a + 3u]),
                        vec4(X[b], X[b + 1u], X[b + 2u], X[b + 3u]));
#else
      vec4 four;
      if (wide) {
        four = X4[(tokens_at[t] + own) / 4u];
      } else {
        const uint from = tokens_at[t] + own;
        const uint left = cols - own;
        four = vec4(X[from], 0.0, 0.0, 0.0);
        if (left > 1u) four.y = X[from + 1u];
        if (left > 2u) four.z = X[from + 2u];
        if (left > 3u) four.w = X[from + 3u];
      }
      parts[t] = Placed(four);
#endif
    }
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      const VALUES values = M(AnyValues)(rows_at[r], cols, col, lane);
      const float scale = M(AnyScale)(rows_at[r], cols, col, lane);
      [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
        sums[r * TOKENS + t] = AddStep(values, scale, parts[t], sums[r * TOKENS + t]);
      }
    }
  }
  [[unroll]] for (uint i = 0u; i < ROWS * TOKENS; ++i) {
    sums[i] = LaneValue(sums[i]);
#ifndef LANES_APART
    sums[i] = LaneSum(sums[i]);
#endif
  }
}
#undef AHEAD
#undef PART_AT
#undef DOTS
#undef ROWS
#undef TOKENS
