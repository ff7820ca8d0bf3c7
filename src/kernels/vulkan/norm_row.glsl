// NormRow(): one row of rms_norm by a whole workgroup: from the floats NORM_X to NORM_OUT, with the
// weights NORM_WEIGHT where there are any. An invocation adds its columns, THREADS apart, in rising
// order.
void NormRow(uint x_at, uint weight_at, uint out_at, uint cols, float eps) {
  // The first columns stay in registers and are loaded at once: one after another the loads would
  // only wait.
  const uint kHeld = 16u;
  float held[kHeld];
#ifdef NORM_WEIGHT
  float weights[kHeld];
#endif
  [[unroll]] for (uint k = 0u; k < kHeld; ++k) {
    const uint i = Thread() + k * THREADS;
    held[k] = i < cols ? NORM_X[x_at + i] : 0.0;
#ifdef NORM_WEIGHT
    weights[k] = i < cols ? NORM_WEIGHT[weight_at + i] : 0.0;
#endif
  }
  float squares = 0.0;
  [[unroll]] for (uint k = 0u; k < kHeld; ++k) squares = Fma(held[k], held[k], squares);
  for (uint i = Thread() + kHeld * THREADS; i < cols; i += THREADS) {
    const float value = NORM_X[x_at + i];
    squares = Fma(value, value, squares);
  }
  const float factor = NormFactor(BlockSum(squares), cols, eps);
  [[unroll]] for (uint k = 0u; k < kHeld; ++k) {
    const uint i = Thread() + k * THREADS;
    float value = Mul(held[k], factor);
#ifdef NORM_WEIGHT
    value = Mul(value, weights[k]);
#endif
    if (i < cols) NORM_OUT[out_at + i] = value;
  }
  for (uint i = Thread() + kHeld * THREADS; i < cols; i += THREADS) {
    float value = Mul(NORM_X[x_at + i], factor);
#ifdef NORM_WEIGHT
    value = Mul(value, NORM_WEIGHT[weight_at + i]);
#endif
    NORM_OUT[out_at + i] = value;
  }
}
