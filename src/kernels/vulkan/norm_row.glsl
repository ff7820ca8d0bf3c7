// NormRow(): one row of rms_norm by a whole workgroup: from the floats NORM_X to NORM_OUT, with the
// weights NORM_WEIGHT where there are any.
void NormRow(uint x_at, uint weight_at, uint out_at, uint cols, float eps) {
  float squares = 0.0;
  for (uint i = Thread(); i < cols; i += THREADS) {
    const float value = NORM_X[x_at + i];
    squares = Fma(value, value, squares);
  }
  const float factor = NormFactor(BlockSum(squares), cols, eps);
  for (uint i = Thread(); i < cols; i += THREADS) {
    float value = Mul(NORM_X[x_at + i], factor);
#ifdef NORM_WEIGHT
    value = Mul(value, NORM_WEIGHT[weight_at + i]);
#endif
    NORM_OUT[out_at + i] = value;
  }
}
