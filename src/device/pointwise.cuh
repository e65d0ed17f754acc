// SPDX-License-Identifier: Apache-2.0
// The pointwise modes on the device, one function each, named after the mode (graph/pointwise_modes.hpp has the
// formulas). Generated code calls them; operands come multiplied by their alphas. Truth values are 0 and 1.
#pragma once

#include "device/fast.cuh"
#include "device/types.cuh"

namespace tsr::dev {

// --- the functions behind them, for both widths
inline float f_exp(float x) { return expf(x); }
inline double f_exp(double x) { return exp(x); }
inline float f_log(float x) { return logf(x); }
inline double f_log(double x) { return log(x); }
inline float f_sqrt(float x) { return sqrtf(x); }
inline double f_sqrt(double x) { return sqrt(x); }
inline float f_abs(float x) { return fabsf(x); }
inline double f_abs(double x) { return fabs(x); }
inline float f_tanh(float x) { return tanhf(x); }
inline double f_tanh(double x) { return tanh(x); }
inline float f_expm1(float x) { return expm1f(x); }
inline double f_expm1(double x) { return expm1(x); }
inline float f_log1p(float x) { return log1pf(x); }
inline double f_log1p(double x) { return log1p(x); }
inline float f_mod(float x, float b) { return fmodf(x, b); }
inline double f_mod(double x, double b) { return fmod(x, b); }
// The normal distribution's cumulative function.
// In f32 the tail is exp(-x^2/2) times a polynomial in t = 1 / (1 + 0.4 |x| / sqrt(2)), fitted to 3e-7 of its value: a
// third of the instructions of erfcf.
constexpr float kMinusHalfLog2e = -0.72134752044448170368f;
inline float f_cdf(float x) {
  float t = fast_reciprocal(fabsf(x) * 0.28284271247461900976f + 1.0f);
  float q = 0.05027242377400398f;
  q = q * t + -0.18294280767440796f;
  q = q * t + 0.16915324330329895f;
  q = q * t + -0.005665995180606842f;
  q = q * t + 0.14145979285240173f;
  q = q * t + 0.1685343086719513f;
  q = q * t + 0.20784376561641693f;
  q = q * t + 0.22566953301429749f;
  q = q * t + 0.22567586600780487f;
  q *= 0.5f * t * fast_exp2(x * x * kMinusHalfLog2e);
  return x > 0.0f ? 1.0f - q : q;
}
inline double f_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float f_sigmoid(float x) { return fast_reciprocal(1.0f + fast_exp2(x * -1.44269504088896340736f)); }
inline double f_sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
template <class T>
T softplus_of(T x) {
  T r = f_log1p(f_exp(-f_abs(x)));
  return x > T(0) ? x + r : r;
}
template <class T>
T gelu_inner(T x) {
  return T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
}

// --- modes of any lane. Integers wrap around: unsigned arithmetic defines that.
template <class T>
T op_add(T x, T b) {
  return x + b;
}
inline i64 op_add(i64 x, i64 b) { return i64(u64(x) + u64(b)); }
template <class T>
T op_sub(T x, T b) {
  return x - b;
}
inline i64 op_sub(i64 x, i64 b) { return i64(u64(x) - u64(b)); }
template <class T>
T op_mul(T x, T b) {
  return x * b;
}
inline i64 op_mul(i64 x, i64 b) { return i64(u64(x) * u64(b)); }
template <class T>
T op_add_square(T x, T b) {
  return op_add(x, op_mul(b, b));
}
template <class T>
T op_min(T x, T b) {
  return x != x || x < b ? x : b;
}
template <class T>
T op_max(T x, T b) {
  return x != x || x > b ? x : b;
}
template <class T>
T op_neg(T x) {
  return -x;
}
inline i64 op_neg(i64 x) { return i64(u64(0) - u64(x)); }
template <class T>
T op_abs(T x) {
  return f_abs(x);
}
inline i64 op_abs(i64 x) { return x < 0 ? op_neg(x) : x; }
template <class T>
T op_identity(T x) {
  return x;
}
template <class T>
T op_cmp_eq(T x, T b) {
  return T(x == b);
}
template <class T>
T op_cmp_neq(T x, T b) {
  return T(x != b);
}
template <class T>
T op_cmp_gt(T x, T b) {
  return T(x > b);
}
template <class T>
T op_cmp_ge(T x, T b) {
  return T(x >= b);
}
template <class T>
T op_cmp_lt(T x, T b) {
  return T(x < b);
}
template <class T>
T op_cmp_le(T x, T b) {
  return T(x <= b);
}
template <class T>
T op_logical_and(T x, T b) {
  return T(x != T(0) && b != T(0));
}
template <class T>
T op_logical_or(T x, T b) {
  return T(x != T(0) || b != T(0));
}
template <class T>
T op_logical_not(T x) {
  return T(x == T(0));
}
template <class T>
T op_select(T x, T b, T t) {
  return t != T(0) ? x : b;
}
template <class T>
T op_div(T x, T b) {
  return x / b;
}
inline i64 op_div(i64 x, i64 b) { return b == 0 ? 0 : b == -1 ? op_neg(x) : x / b; }
template <class T>
T op_mod(T x, T b) {
  return f_mod(x, b);
}
inline i64 op_mod(i64 x, i64 b) { return b == 0 || b == -1 ? 0 : x % b; }
template <class T>
T op_floor_mod(T x, T b) {
  T r = f_mod(x, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
}
inline i64 op_floor_mod(i64 x, i64 b) { return b == 0 || b == -1 ? 0 : (x % b + b) % b; }

// --- modes of real numbers
template <class T>
T op_sqrt(T x) {
  return f_sqrt(x);
}
inline float op_rsqrt(float x) { return rsqrtf(x); }
inline double op_rsqrt(double x) { return 1 / sqrt(x); }
template <class T>
T op_reciprocal(T x) {
  return T(1) / x;
}
inline float op_ceil(float x) { return ceilf(x); }
inline double op_ceil(double x) { return ceil(x); }
inline float op_floor(float x) { return floorf(x); }
inline double op_floor(double x) { return floor(x); }
// For results that are stored in 16 bits or less. The error of the exponential grows with |x| to about 1e-5 of the
// value; the tail of f_cdf is fitted to 4e-6 of its value.
inline float narrow_exp(float x) { return fast_exp2(x * 1.44269504088896340736f); }
inline float narrow_gelu(float x) {
  float t = fast_reciprocal(fabsf(x) * 0.308f + 1.0f);
  float q = -0.075532466173172f;
  q = q * t + 0.1899099349975586f;
  q = q * t + 0.006956783123314381f;
  q = q * t + 0.13669520616531372f;
  q = q * t + 0.1188424676656723f;
  q = q * t + 0.12312617152929306f;
  q *= t * fast_exp2(x * x * kMinusHalfLog2e);
  return x * (x > 0.0f ? 1.0f - q : q);
}
template <class T>
T op_exp(T x) {
  return f_exp(x);
}
template <class T>
T op_log(T x) {
  return f_log(x);
}
inline float op_sin(float x) { return sinf(x); }
inline double op_sin(double x) { return sin(x); }
inline float op_cos(float x) { return cosf(x); }
inline double op_cos(double x) { return cos(x); }
inline float op_tan(float x) { return tanf(x); }
inline double op_tan(double x) { return tan(x); }
inline float op_erf(float x) { return erff(x); }
inline double op_erf(double x) { return erf(x); }
inline float op_pow(float x, float b) { return powf(x, b); }
inline double op_pow(double x, double b) { return pow(x, b); }
inline float op_atan2(float x, float b) { return atan2f(x, b); }
inline double op_atan2(double x, double b) { return atan2(x, b); }
template <class T>
T op_tanh(T x) {
  return f_tanh(x);
}
template <class T>
T op_sigmoid(T x) {
  return f_sigmoid(x);
}
template <class T>
T op_gelu(T x) {
  return x * f_cdf(x);
}
template <class T>
T op_gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + f_tanh(gelu_inner(x)));
}
// The plain relu, and that with bounds and a slope below.
template <class T>
T op_relu(T x) {
  return x < T(0) ? T(0) : x;
}
inline float op_relu(float x) { return not_below(x, 0.0f); }
template <class T>
T op_relu(T x, T lower, T upper, T slope) {
  return x < lower ? (slope == T(0) ? lower : lower + slope * (x - lower)) : x > upper ? upper : x;
}
template <class T>
T op_elu(T x, T alpha) {
  return x > T(0) ? x : alpha * f_expm1(x);
}
template <class T>
T op_softplus(T x, T beta) {
  return softplus_of(beta * x) / beta;
}
template <class T>
T op_swish(T x, T beta) {
  return x * f_sigmoid(beta * x);
}

// --- gradients: x is the forward input, d the gradient of the result
template <class T>
T op_relu_bwd(T x, T d, T lower, T upper, T slope) {
  if (x != x) return x * d;
  return x <= lower ? slope * d : x >= upper ? T(0) * d : d;
}
template <class T>
T op_relu_bwd(T x, T d) {
  return x != x ? x * d : x <= T(0) ? T(0) * d : d;
}
template <class T>
T op_tanh_bwd(T x, T d) {
  T h = f_tanh(x);
  return d * (T(1) - h * h);
}
template <class T>
T op_sigmoid_bwd(T x, T d) {
  T h = f_sigmoid(x);
  return d * h * (T(1) - h);
}
template <class T>
T op_elu_bwd(T x, T d, T alpha) {
  return x > T(0) ? d : d * alpha * f_exp(x);
}
template <class T>
T op_gelu_bwd(T x, T d) {
  return d * (f_cdf(x) + x * f_exp(-x * x * T(0.5)) * T(0.39894228040143267794));
}
template <class T>
T op_softplus_bwd(T x, T d, T beta) {
  return d * f_sigmoid(beta * x);
}
template <class T>
T op_swish_bwd(T x, T d, T beta) {
  T h = f_sigmoid(beta * x);
  return d * (h + beta * x * h * (T(1) - h));
}
template <class T>
T op_gelu_tanh_bwd(T x, T d) {
  T h = f_tanh(gelu_inner(x)), inner = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
  return d * (T(0.5) * (T(1) + h) + T(0.5) * x * (T(1) - h * h) * inner);
}

}  // namespace tsr::dev
