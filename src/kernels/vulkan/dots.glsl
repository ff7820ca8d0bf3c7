// void DOTS(...): the products of ROWS rows of a matrix with TOKENS rows of x, by the 32 lanes of a
// group. Included once for each pair of numbers and each matrix M of kernels/vulkan/matrix.glsl; x
// is the array X of floats, X4 in fours.
//
// With LANES_APART each lane keeps its own sum, which LaneSum() has yet to add: for a call that not
// all groups of a workgroup make.
//
// A lane adds its columns in rising order into one sum for each pair of a row and a token, so that
// the bits of a product do not depend on what else is computed beside it.

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
  if (wide) {
    for (; col + kChunkCols <= cols; col += kChunkCols) {
      M(Chunk) chunks[ROWS];
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        chunks[r] = M(LoadChunk)(rows_at[r], cols, col, lane);
      }
      [[unroll]] for (uint s = 0u; s < CHUNK_STEPS; ++s) {
        Four fours[TOKENS];
        [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
          fours[t] = Placed(X4[(tokens_at[t] + col) / 4u + s * 32u + lane]);
        }
        [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
          const vec4 values = M(ChunkValues)(chunks[r], s);
          const float scale = M(ChunkScale)(chunks[r], s);
          [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
            sums[r * TOKENS + t] = AddStep(values, scale, fours[t], sums[r * TOKENS + t]);
          }
        }
      }
    }
#ifdef TYPE_Q4_0
    for (; col + 256u <= cols; col += 256u) {
      uint quants[ROWS];
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        quants[r] = M(w32)[(rows_at[r] + col / 2u) / 4u + lane];
      }
      [[unroll]] for (uint s = 0u; s < 2u; ++s) {
        Four fours[TOKENS];
        [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
          fours[t] = Placed(X4[(tokens_at[t] + col) / 4u + s * 32u + lane]);
        }
        [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
          const vec4 values = Values(quants[r], s != 0u);
          const float scale = M(AnyScale)(rows_at[r], cols, col + s * 128u, lane);
          [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
            sums[r * TOKENS + t] = AddStep(values, scale, fours[t], sums[r * TOKENS + t]);
          }
        }
      }
    }
#endif
  }
  for (; col < cols; col += 128u) {
    const uint own = col + 4u * lane;
    if (own >= cols) continue;
    Four fours[TOKENS];
    [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
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
      fours[t] = Placed(four);
    }
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      const vec4 values = M(AnyValues)(rows_at[r], cols, col, lane);
      const float scale = M(AnyScale)(rows_at[r], cols, col, lane);
      [[unroll]] for (uint t = 0u; t < TOKENS; ++t) {
        sums[r * TOKENS + t] = AddStep(values, scale, fours[t], sums[r * TOKENS + t]);
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
#undef DOTS
#undef ROWS
#undef TOKENS
