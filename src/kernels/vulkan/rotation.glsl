// Sine, cosine and powers in double, for rotary positions, by the steps of simd/trig-inl.h.
#ifndef ASSAY_KERNELS_VULKAN_ROTATION_GLSL
#define ASSAY_KERNELS_VULKAN_ROTATION_GLSL

#include "kernels/vulkan/common.glsl"

double MulAdd(double a, double b, double c) {
  precise double product = a * b;
  precise double r = product + c;
  return r;
}

// The natural logarithm of a float above 0: of its mantissa by the series of the inverse hyperbolic
// tangent.
double Log(float x) {
  const uint bits = floatBitsToUint(x);
  int exponent = int(bits >> 23) - 127;
  float mantissa = uintBitsToFloat((bits & 0x7FFFFFu) | 0x3F800000u);
  if (mantissa > 1.41421356) {
    mantissa *= 0.5;
    exponent += 1;
  }
  const double m = double(mantissa);
  precise double t = (m - 1.0lf) / (m + 1.0lf);
  precise double square = t * t;
  double sum = 1.0lf / 25.0lf;
  for (int odd = 23; odd >= 1; odd -= 2) sum = MulAdd(sum, square, 1.0lf / double(odd));
  precise double twice = 2.0lf * t;
  precise double r = double(exponent) * 0.6931471805599453lf;
  return MulAdd(twice, sum, r);
}

// Horner's rule over the inverse factorials.
double ExpDouble(double x) {
  const double taylor[14] = double[14](1.0lf / 6227020800.0lf, 1.0lf / 479001600.0lf,
                                       1.0lf / 39916800.0lf, 1.0lf / 3628800.0lf,
                                       1.0lf / 362880.0lf, 1.0lf / 40320.0lf, 1.0lf / 5040.0lf,
                                       1.0lf / 720.0lf, 1.0lf / 120.0lf, 1.0lf / 24.0lf,
                                       1.0lf / 6.0lf, 0.5lf, 1.0lf, 1.0lf);
  precise double scaled = x * 1.4426950408889634lf;
  const double n = roundEven(scaled);
  double r = MulAdd(-n, 0.6931471803691238lf, x);
  r = MulAdd(-n, 1.9082149292705877e-10lf, r);
  double sum = taylor[0];
  for (int i = 1; i < 14; ++i) sum = MulAdd(sum, r, taylor[i]);
  precise double power = sum * packDouble2x32(uvec2(0u, uint(int(n) + 1023) << 20));
  return power;
}

void SinCos(double angle, out double sine, out double cosine) {
  const double sines[8] = double[8](-1.0lf / 1307674368000.0lf, 1.0lf / 6227020800.0lf,
                                    -1.0lf / 39916800.0lf, 1.0lf / 362880.0lf, -1.0lf / 5040.0lf,
                                    1.0lf / 120.0lf, -1.0lf / 6.0lf, 1.0lf);
  const double cosines[9] = double[9](1.0lf / 20922789888000.0lf, -1.0lf / 87178291200.0lf,
                                      1.0lf / 479001600.0lf, -1.0lf / 3628800.0lf,
                                      1.0lf / 40320.0lf, -1.0lf / 720.0lf, 1.0lf / 24.0lf, -0.5lf,
                                      1.0lf);
  precise double scaled = angle * 0.6366197723675814lf;
  const double quarter = roundEven(scaled);
  // pi / 2 in three parts; the first two have zeros below, so that their products with `quarter`
  // are exact.
  double r = MulAdd(-quarter, 1.5707963267341256lf, angle);
  r = MulAdd(-quarter, 6.077100506303966e-11lf, r);
  r = MulAdd(-quarter, 2.0222662487959506e-21lf, r);
  precise double square = r * r;
  double s = sines[0];
  for (int i = 1; i < 8; ++i) s = MulAdd(s, square, sines[i]);
  precise double rotated = s * r;
  double co = cosines[0];
  for (int i = 1; i < 9; ++i) co = MulAdd(co, square, cosines[i]);
  const int whole = int(quarter);
  // Odd quarters swap the two; sine is negative in quarters 2 and 3, cosine in 1 and 2.
  const bool odd = (whole & 1) != 0;
  sine = odd ? co : rotated;
  cosine = odd ? rotated : co;
  if ((whole & 2) != 0) sine = -sine;
  if (((whole + 1) & 2) != 0) cosine = -cosine;
}

// Of the angle position * base^(-2 j / head_dim), rounded once.
void Rotation(uint position, uint j, uint head_dim, float base, out float sine,
              out float cosine) {
  precise double step = -2.0lf * Log(base) / double(head_dim);
  precise double exponent = double(j) * step;
  precise double angle = double(position) * ExpDouble(exponent);
  double s;
  double co;
  SinCos(angle, s, co);
  sine = float(s);
  cosine = float(co);
}

#endif
