// One head of head_norm_rope by the 32 lanes of a group: from the floats HEAD_X to HeadOut(), with
// the weights HEAD_WEIGHT where there are any. NORM, ROPE: which halves there are.
float HeadValue(uint x_at, uint i, uint weight_at, float factor) {
  float value = HEAD_X[x_at + i];
#ifdef NORM
  value = Mul(value, factor);
#ifdef HEAD_WEIGHT
  value = Mul(value, HEAD_WEIGHT[weight_at + i]);
#endif
#endif
  return value;
}

// Every invocation of the workgroup comes here; those that are not `live` write nothing.
void Head(bool live, uint x_at, uint weight_at, uint head_dim, uint position, float eps,
          float base) {
  const uint lane = Lane();
  float factor = 1.0;
#ifdef NORM
  float squares = 0.0;
  if (live) {
    for (uint i = lane; i < head_dim; i += 32u) {
      const float value = HEAD_X[x_at + i];
      squares = Fma(value, value, squares);
    }
  }
  factor = NormFactor(LaneSum(squares), head_dim, eps);
#endif
  if (!live) return;
#ifdef ROPE
  const uint half_dim = head_dim / 2u;
  for (uint j = lane; j < half_dim; j += 32u) {
    const float a = HeadValue(x_at, j, weight_at, factor);
    const float b = HeadValue(x_at, j + half_dim, weight_at, factor);
    float sine;
    float cosine;
    Rotation(position, j, head_dim, base, sine, cosine);
    HeadOut(j, Sub(Mul(a, cosine), Mul(b, sine)));
    HeadOut(j + half_dim, Add(Mul(a, sine), Mul(b, cosine)));
  }
#else
  for (uint i = lane; i < head_dim; i += 32u) {
    HeadOut(i, HeadValue(x_at, i, weight_at, factor));
  }
#endif
}
