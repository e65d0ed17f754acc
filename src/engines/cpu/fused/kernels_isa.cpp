// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. Everything but the table at the end is
// internal, so that the linker can never pick a wider instruction set's copy of a shared function.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "engines/cpu/fused/kernels.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tsr::cpu::TESSERA_ISA {
namespace {

#include "engines/cpu/fused/vector_math.inc"

using M = tessera::PointwiseMode;
using tessera::PointwiseOptions;
using tessera::ReduceMode;

// --- functions by lane: f32 uses the vector versions, f64 the C library
[[gnu::always_inline]] inline float f_exp(float x) { return exp_f32(x); }
[[gnu::always_inline]] inline double f_exp(double x) { return ::exp(x); }
[[gnu::always_inline]] inline float f_log(float x) { return log_f32(x); }
[[gnu::always_inline]] inline double f_log(double x) { return ::log(x); }
[[gnu::always_inline]] inline float f_tanh(float x) { return tanh_f32(x); }
[[gnu::always_inline]] inline double f_tanh(double x) { return ::tanh(x); }
[[gnu::always_inline]] inline float f_erf(float x) { return erf_f32(x); }
[[gnu::always_inline]] inline double f_erf(double x) { return ::erf(x); }
[[gnu::always_inline]] inline float f_cdf(float x) { return normal_cdf_f32(x); }
[[gnu::always_inline]] inline double f_cdf(double x) { return 0.5 * ::erfc(-x * 0.70710678118654752440); }
[[gnu::always_inline]] inline float f_sigmoid(float x) { return sigmoid_f32(x); }
[[gnu::always_inline]] inline double f_sigmoid(double x) {
  return x >= 0 ? 1 / (1 + ::exp(-x)) : ::exp(x) / (1 + ::exp(x));
}
[[gnu::always_inline]] inline float f_sqrt(float x) { return __builtin_sqrtf(x); }
[[gnu::always_inline]] inline double f_sqrt(double x) { return __builtin_sqrt(x); }
[[gnu::always_inline]] inline float f_abs(float x) { return __builtin_fabsf(x); }
[[gnu::always_inline]] inline double f_abs(double x) { return __builtin_fabs(x); }
[[gnu::always_inline]] inline float f_floor(float x) { return __builtin_floorf(x); }
[[gnu::always_inline]] inline double f_floor(double x) { return __builtin_floor(x); }
[[gnu::always_inline]] inline float f_ceil(float x) { return __builtin_ceilf(x); }
[[gnu::always_inline]] inline double f_ceil(double x) { return __builtin_ceil(x); }
[[gnu::always_inline]] inline float f_sin(float x) { return ::sinf(x); }
[[gnu::always_inline]] inline double f_sin(double x) { return ::sin(x); }
[[gnu::always_inline]] inline float f_cos(float x) { return ::cosf(x); }
[[gnu::always_inline]] inline double f_cos(double x) { return ::cos(x); }
[[gnu::always_inline]] inline float f_tan(float x) { return ::tanf(x); }
[[gnu::always_inline]] inline double f_tan(double x) { return ::tan(x); }
[[gnu::always_inline]] inline float f_pow(float x, float b) { return ::powf(x, b); }
[[gnu::always_inline]] inline double f_pow(double x, double b) { return ::pow(x, b); }
[[gnu::always_inline]] inline float f_mod(float x, float b) { return ::fmodf(x, b); }
[[gnu::always_inline]] inline double f_mod(double x, double b) { return ::fmod(x, b); }
[[gnu::always_inline]] inline float f_atan2(float x, float b) { return ::atan2f(x, b); }
[[gnu::always_inline]] inline double f_atan2(double x, double b) { return ::atan2(x, b); }
[[gnu::always_inline]] inline float f_expm1(float x) {
  // exp(x) - 1 loses digits near 0; a short series takes over there.
  float series = x * (1.0f + x * (0.5f + x * (0.166666667f + x * (0.0416666667f + x * 0.00833333333f))));
  return f_abs(x) < 0.15f ? series : exp_f32(x) - 1.0f;
}
[[gnu::always_inline]] inline double f_expm1(double x) { return ::expm1(x); }
[[gnu::always_inline]] inline float f_log1p(float x) {
  // log(1+x) * x / ((1+x) - 1) corrects the rounding of 1+x.
  float u = 1.0f + x, d = u - 1.0f;
  return d == 0.0f ? x : log_f32(u) * (x / d);
}
[[gnu::always_inline]] inline double f_log1p(double x) { return ::log1p(x); }

template <class T>
inline T softplus(T x) {
  T e = f_exp(-f_abs(x));
  T r = f_log1p(e);
  return x > 0 ? x + r : r;
}
template <class T>
inline T gelu_inner(T x) {
  return T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
}

// --- loops. apply() has multiplied x and b by their alphas already; a block whose operands are all scalars has n = 1.
template <class T, class F>
void unary(const ApplyArgs& g, const F& f) {
  const T* __restrict a = static_cast<const T*>(g.a);
  T* __restrict y = static_cast<T*>(g.y);
  for (int64_t i = 0; i < g.n; ++i) y[i] = f(a[i]);
}

template <class T, class F>
void binary(const ApplyArgs& g, const F& f) {
  const T* __restrict a = static_cast<const T*>(g.a);
  const T* __restrict b = static_cast<const T*>(g.b);
  T* __restrict y = static_cast<T*>(g.y);
  if (g.b_scalar) {
    T v = b[0];
    for (int64_t i = 0; i < g.n; ++i) y[i] = f(a[i], v);
  } else if (g.a_scalar) {
    T v = a[0];
    for (int64_t i = 0; i < g.n; ++i) y[i] = f(v, b[i]);
  } else {
    for (int64_t i = 0; i < g.n; ++i) y[i] = f(a[i], b[i]);
  }
}

template <class T>
void choose(const ApplyArgs& g) {
  const T *a = static_cast<const T*>(g.a), *b = static_cast<const T*>(g.b), *c = static_cast<const T*>(g.c);
  T* __restrict y = static_cast<T*>(g.y);
  int64_t da = !g.a_scalar, db = !g.b_scalar, dc = !g.c_scalar;
  if (da && db && dc)
    for (int64_t i = 0; i < g.n; ++i) y[i] = c[i] != 0 ? a[i] : b[i];
  else
    for (int64_t i = 0; i < g.n; ++i) y[i] = c[i * dc] != 0 ? a[i * da] : b[i * db];
}

// Modes that are defined for every lane; false when `mode` is not one of them.
template <class T>
bool common(const ApplyArgs& g, M mode) {
  switch (mode) {
    case M::add:
      binary<T>(g, [](T x, T b) { return x + b; });
      return true;
    case M::sub:
      binary<T>(g, [](T x, T b) { return x - b; });
      return true;
    case M::mul:
      binary<T>(g, [](T x, T b) { return x * b; });
      return true;
    case M::add_square:
      binary<T>(g, [](T x, T b) { return x + b * b; });
      return true;
    case M::min:
      binary<T>(g, [](T x, T b) { return x != x || x < b ? x : b; });
      return true;
    case M::max:
      binary<T>(g, [](T x, T b) { return x != x || x > b ? x : b; });
      return true;
    case M::neg:
      unary<T>(g, [](T x) { return -x; });
      return true;
    case M::identity:
      unary<T>(g, [](T x) { return x; });
      return true;
    case M::select:
      choose<T>(g);
      return true;
    case M::cmp_eq:
      binary<T>(g, [](T x, T b) { return T(x == b); });
      return true;
    case M::cmp_neq:
      binary<T>(g, [](T x, T b) { return T(x != b); });
      return true;
    case M::cmp_gt:
      binary<T>(g, [](T x, T b) { return T(x > b); });
      return true;
    case M::cmp_ge:
      binary<T>(g, [](T x, T b) { return T(x >= b); });
      return true;
    case M::cmp_lt:
      binary<T>(g, [](T x, T b) { return T(x < b); });
      return true;
    case M::cmp_le:
      binary<T>(g, [](T x, T b) { return T(x <= b); });
      return true;
    case M::logical_and:
      binary<T>(g, [](T x, T b) { return T((x != 0) & (b != 0)); });
      return true;
    case M::logical_or:
      binary<T>(g, [](T x, T b) { return T((x != 0) | (b != 0)); });
      return true;
    case M::logical_not:
      unary<T>(g, [](T x) { return T(x == 0); });
      return true;
    default:
      return false;
  }
}

template <class T>
void real_apply(const ApplyArgs& g) {
  const PointwiseOptions& o = *g.options;
  // One multiply-add instead of two passes: plans fold constant factors into these alphas.
  T s = T(o.alpha1), t = T(o.alpha2);
  if (o.mode == M::add) return binary<T>(g, [=](T x, T b) { return s * x + t * b; });
  if (o.mode == M::sub) return binary<T>(g, [=](T x, T b) { return s * x - t * b; });
  if (common<T>(g, o.mode)) return;
  T lower = T(o.lower), upper = T(o.upper), slope = T(o.slope), alpha = T(o.alpha), beta = T(o.beta);
  auto one = [&](auto f) { unary<T>(g, f); };
  auto two = [&](auto f) { binary<T>(g, f); };
  switch (o.mode) {
    case M::sqrt:
      return one([](T x) { return f_sqrt(x); });
    case M::rsqrt:
      return one([](T x) { return T(1) / f_sqrt(x); });
    case M::reciprocal:
      return one([](T x) { return T(1) / x; });
    case M::abs:
      return one([](T x) { return f_abs(x); });
    case M::ceil:
      return one([](T x) { return f_ceil(x); });
    case M::floor:
      return one([](T x) { return f_floor(x); });
    case M::exp:
      return one([](T x) { return f_exp(x); });
    case M::log:
      return one([](T x) { return f_log(x); });
    case M::sin:
      return one([](T x) { return f_sin(x); });
    case M::cos:
      return one([](T x) { return f_cos(x); });
    case M::tan:
      return one([](T x) { return f_tan(x); });
    case M::erf:
      return one([](T x) { return f_erf(x); });
    case M::div:
      return two([](T x, T b) { return x / b; });
    case M::mod:
      return two([](T x, T b) { return f_mod(x, b); });
    case M::floor_mod:
      return two([](T x, T b) {
        T r = f_mod(x, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      });
    case M::pow:
      return two([](T x, T b) { return f_pow(x, b); });
    case M::atan2:
      return two([](T x, T b) { return f_atan2(x, b); });
    case M::relu:
      if (slope == 0) return one([=](T x) { return x < lower ? lower : x > upper ? upper : x; });
      return one([=](T x) { return x < lower ? lower + slope * (x - lower) : x > upper ? upper : x; });
    case M::tanh:
      return one([](T x) { return f_tanh(x); });
    case M::sigmoid:
      return one([](T x) { return f_sigmoid(x); });
    case M::elu:
      return one([=](T x) { return x > 0 ? x : alpha * f_expm1(x); });
    case M::gelu:
      return one([](T x) { return x * f_cdf(x); });
    case M::softplus:
      return one([=](T x) { return softplus(beta * x) / beta; });
    case M::swish:
      return one([=](T x) { return x * f_sigmoid(beta * x); });
    case M::gelu_tanh:
      return one([](T x) { return T(0.5) * x * (T(1) + f_tanh(gelu_inner(x))); });
    case M::relu_bwd:
      return two([=](T x, T d) { return x != x ? x * d : x <= lower ? slope * d : x >= upper ? T(0) * d : d; });
    case M::tanh_bwd:
      return two([](T x, T d) {
        T h = f_tanh(x);
        return d * (T(1) - h * h);
      });
    case M::sigmoid_bwd:
      return two([](T x, T d) {
        T h = f_sigmoid(x);
        return d * h * (T(1) - h);
      });
    case M::elu_bwd:
      return two([=](T x, T d) { return x > 0 ? d : d * alpha * f_exp(x); });
    case M::gelu_bwd:
      return two([](T x, T d) { return d * (f_cdf(x) + x * f_exp(-x * x / 2) * T(0.39894228040143267794)); });
    case M::softplus_bwd:
      return two([=](T x, T d) { return d * f_sigmoid(beta * x); });
    case M::swish_bwd:
      return two([=](T x, T d) {
        T h = f_sigmoid(beta * x);
        return d * (h + beta * x * h * (T(1) - h));
      });
    case M::gelu_tanh_bwd:
      return two([](T x, T d) {
        T h = f_tanh(gelu_inner(x)), inner = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
        return d * (T(0.5) * (T(1) + h) + T(0.5) * x * (T(1) - h * h) * inner);
      });
    default:
      return;
  }
}

void integer_apply(const ApplyArgs& g) {
  // Unsigned arithmetic wraps around; signed overflow would be undefined.
  using U = uint64_t;
  using T = int64_t;
  const PointwiseOptions& o = *g.options;
  switch (o.mode) {
    case M::add:
      return binary<U>(g, [](U x, U b) { return x + b; });
    case M::sub:
      return binary<U>(g, [](U x, U b) { return x - b; });
    case M::mul:
      return binary<U>(g, [](U x, U b) { return x * b; });
    case M::add_square:
      return binary<U>(g, [](U x, U b) { return x + b * b; });
    case M::neg:
      return unary<U>(g, [](U x) { return U(0) - x; });
    case M::abs:
      return unary<U>(g, [](U x) { return T(x) < 0 ? U(0) - x : x; });
    case M::relu:
      return unary<T>(g, [](T x) { return x < 0 ? T(0) : x; });
    case M::div:
      return binary<T>(g, [](T x, T b) { return b == 0 ? T(0) : b == -1 ? T(U(0) - U(x)) : x / b; });
    case M::mod:
      return binary<T>(g, [](T x, T b) { return b == 0 || b == -1 ? T(0) : x % b; });
    case M::floor_mod:
      return binary<T>(g, [](T x, T b) { return b == 0 || b == -1 ? T(0) : (x % b + b) % b; });
    default:
      (void)common<T>(g, o.mode);
  }
}

// An operand times its alpha, in `buffer` when that changes anything.
template <class T>
const void* scaled(const void* a, double alpha, bool scalar, int64_t n, T* buffer) {
  if (!a || alpha == 1) return a;
  int64_t count = scalar ? 1 : n;
  for (int64_t i = 0; i < count; ++i) buffer[i] = T(static_cast<const T*>(a)[i] * T(alpha));
  return buffer;
}

template <class T, class F>
void apply_as(ApplyArgs g, const F& f) {
  T first[kBlock], second[kBlock];
  bool inside = (g.options->mode == M::add || g.options->mode == M::sub) && T(0.5) != T(0);  // real_apply scales itself
  if (!inside) {
    g.a = scaled(g.a, g.options->alpha1, g.a_scalar, g.n, first);
    g.b = scaled(g.b, g.options->alpha2, g.b_scalar, g.n, second);
  }
  int64_t n = g.n;
  bool scalar = g.a_scalar && (!g.b || g.b_scalar) && (!g.c || g.c_scalar);
  if (scalar) g.n = 1;
  f(g);
  T* y = static_cast<T*>(g.y);
  for (int64_t i = g.n; i < n; ++i) y[i] = y[0];
}

void apply(Lane lane, const ApplyArgs& g) {
  if (lane == Lane::f32)
    apply_as<float>(g, real_apply<float>);
  else if (lane == Lane::f64)
    apply_as<double>(g, real_apply<double>);
  else
    apply_as<int64_t>(g, integer_apply);
}

// --- conversions between memory and lanes
inline float half_to_float(uint16_t h) {
  uint32_t m = h & 0x7fffu, sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t bits = as_bits(as_float(m << 13) * 0x1p112f);
  bits |= m >= 0x7c00u ? 0x7f800000u : 0u;
  return as_float(bits | sign);
}
inline uint16_t float_to_half(float f) {
  uint32_t u = as_bits(f), sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
  uint32_t subnormal = as_bits(as_float(m) + 0.5f) - 0x3f000000u;  // rounds to multiples of 2^-24
  uint32_t normal = (m - 0x38000000u + 0xfffu + ((m >> 13) & 1u)) >> 13;
  uint32_t r = m < 0x38800000u ? subnormal : normal;
  r = m >= 0x477ff000u ? 0x7c00u : r;
  r = m > 0x7f800000u ? 0x7e00u : r;
  return static_cast<uint16_t>(r | sign);
}
inline uint16_t float_to_bfloat(float f) {
  uint32_t u = as_bits(f), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? ((u >> 16) & 0x8000u) | 0x7fc0u : r);
}
inline float bfloat_to_float(uint16_t b) { return as_float(static_cast<uint32_t>(b) << 16); }

inline int64_t nearest_integer(double v, double lo, double hi) {
  double r = __builtin_nearbyint(v);
  r = r < lo ? lo : r > hi ? hi : r;
  return v != v ? 0 : static_cast<int64_t>(r);
}

template <class U, class T, class F>
void load_loop(const void* base, int64_t offset, int64_t stride, void* out, int64_t n, const F& f) {
  const U* p = static_cast<const U*>(base) + offset;
  T* __restrict y = static_cast<T*>(out);
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = T(f(p[i]));
  else
    for (int64_t i = 0; i < n; ++i) y[i] = T(f(p[i * stride]));
}

template <class U, class T, class F>
void store_loop(const void* in, void* base, int64_t offset, int64_t stride, int64_t n, const F& f) {
  U* p = static_cast<U*>(base) + offset;
  const T* __restrict a = static_cast<const T*>(in);
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) p[i] = f(a[i]);
  else
    for (int64_t i = 0; i < n; ++i) p[i * stride] = f(a[i]);
}

template <class T>
void load_as(DType type, const void* base, int64_t offset, int64_t stride, void* y, int64_t n) {
  auto same = [](auto v) { return v; };
  switch (type) {
    case DType::f32:
      return load_loop<float, T>(base, offset, stride, y, n, same);
    case DType::f64:
      return load_loop<double, T>(base, offset, stride, y, n, same);
    case DType::f16:
      return load_loop<uint16_t, T>(base, offset, stride, y, n, half_to_float);
    case DType::bf16:
      return load_loop<uint16_t, T>(base, offset, stride, y, n, bfloat_to_float);
    case DType::i64:
      return load_loop<int64_t, T>(base, offset, stride, y, n, same);
    case DType::i32:
      return load_loop<int32_t, T>(base, offset, stride, y, n, same);
    case DType::i8:
      return load_loop<int8_t, T>(base, offset, stride, y, n, same);
    case DType::u8:
      return load_loop<uint8_t, T>(base, offset, stride, y, n, same);
    case DType::boolean:
      return load_loop<uint8_t, T>(base, offset, stride, y, n, [](uint8_t v) { return v != 0; });
    default: {
      T* out = static_cast<T*>(y);
      for (int64_t i = 0; i < n; ++i) out[i] = T(tsr::load<double>(type, base, offset + i * stride));
    }
  }
}

template <class T>
void store_as(DType type, const void* a, void* base, int64_t offset, int64_t stride, int64_t n) {
  auto integer = [](double lo, double hi) {
    return [lo, hi](T v) {
      if constexpr (sizeof(T) == 8 && !(T(0.5) > T(0)))
        return double(v) < lo ? int64_t(lo) : double(v) > hi ? int64_t(hi) : int64_t(v);
      else
        return nearest_integer(double(v), lo, hi);
    };
  };
  switch (type) {
    case DType::f32:
      return store_loop<float, T>(a, base, offset, stride, n, [](T v) { return float(v); });
    case DType::f64:
      return store_loop<double, T>(a, base, offset, stride, n, [](T v) { return double(v); });
    case DType::f16:
      if constexpr (sizeof(T) == 4) return store_loop<uint16_t, T>(a, base, offset, stride, n, float_to_half);
      break;
    case DType::bf16:
      if constexpr (sizeof(T) == 4) return store_loop<uint16_t, T>(a, base, offset, stride, n, float_to_bfloat);
      break;
    case DType::i32:
      return store_loop<int32_t, T>(a, base, offset, stride, n,
                                    [f = integer(-2147483648.0, 2147483647.0)](T v) { return int32_t(f(v)); });
    case DType::i8:
      return store_loop<int8_t, T>(a, base, offset, stride, n, [f = integer(-128, 127)](T v) { return int8_t(f(v)); });
    case DType::u8:
      return store_loop<uint8_t, T>(a, base, offset, stride, n, [f = integer(0, 255)](T v) { return uint8_t(f(v)); });
    case DType::boolean:
      return store_loop<uint8_t, T>(a, base, offset, stride, n, [](T v) { return uint8_t(v != 0); });
    default:
      break;
  }
  const T* in = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) tsr::store<T>(type, base, offset + i * stride, in[i]);
}

void load(DType type, Lane lane, const void* base, int64_t offset, int64_t stride, void* y, int64_t n) {
  if (lane == Lane::f32)
    load_as<float>(type, base, offset, stride, y, n);
  else if (lane == Lane::f64)
    load_as<double>(type, base, offset, stride, y, n);
  else if (type == DType::i64)
    load_loop<int64_t, int64_t>(base, offset, stride, y, n, [](int64_t v) { return v; });
  else if (type == DType::i32)
    load_loop<int32_t, int64_t>(base, offset, stride, y, n, [](int32_t v) { return v; });
  else
    for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(y)[i] = tsr::load<int64_t>(type, base, offset + i * stride);
}

void store(DType type, Lane lane, const void* a, void* base, int64_t offset, int64_t stride, int64_t n) {
  if (lane == Lane::f32)
    store_as<float>(type, a, base, offset, stride, n);
  else if (lane == Lane::f64)
    store_as<double>(type, a, base, offset, stride, n);
  else
    store_as<int64_t>(type, a, base, offset, stride, n);
}

void stream(const void* in, void* out, int64_t n) {
  const auto* a = static_cast<const float*>(in);
  auto* y = static_cast<float*>(out);
  int64_t i = 0;
#if defined(__AVX__)
  for (; i < n && reinterpret_cast<uintptr_t>(y + i) % 32 != 0; ++i) y[i] = a[i];
  for (; i + 8 <= n; i += 8) _mm256_stream_ps(y + i, _mm256_loadu_ps(a + i));
#endif
  for (; i < n; ++i) y[i] = a[i];
}

void fence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

// What a lane's values become in `type`, read back into the lane.
void round(DType type, Lane lane, const void* a, void* y, int64_t n) {
  if (lane == Lane::f32 && type == DType::bf16)
    return load_loop<float, float>(a, 0, 1, y, n, [](float v) { return bfloat_to_float(float_to_bfloat(v)); });
  if (lane == Lane::f32 && type == DType::f16)
    return load_loop<float, float>(a, 0, 1, y, n, [](float v) { return half_to_float(float_to_half(v)); });
  constexpr int64_t kPiece = 64;
  alignas(64) unsigned char cell[kPiece * 16];
  int64_t bytes = lane_bytes(lane);
  for (int64_t i = 0; i < n; i += kPiece) {
    int64_t m = n - i < kPiece ? n - i : kPiece;
    store(type, lane, static_cast<const char*>(a) + i * bytes, cell, 0, 1, m);
    load(type, lane, cell, 0, 1, static_cast<char*>(y) + i * bytes, m);
  }
}

template <class A, class B>
void convert_loop(const void* a, void* y, int64_t n) {
  const A* __restrict in = static_cast<const A*>(a);
  B* __restrict out = static_cast<B*>(y);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (B(0.5) == B(0) && A(0.5) != A(0))
      out[i] = nearest_integer(double(in[i]), -9.2233720368547748e18, 9.2233720368547748e18);
    else
      out[i] = B(in[i]);
  }
}

void convert(Lane from, Lane to, const void* a, void* y, int64_t n) {
  if (from == Lane::f32 && to == Lane::f64)
    convert_loop<float, double>(a, y, n);
  else if (from == Lane::f32 && to == Lane::i64)
    convert_loop<float, int64_t>(a, y, n);
  else if (from == Lane::f64 && to == Lane::f32)
    convert_loop<double, float>(a, y, n);
  else if (from == Lane::f64 && to == Lane::i64)
    convert_loop<double, int64_t>(a, y, n);
  else if (from == Lane::i64 && to == Lane::f32)
    convert_loop<int64_t, float>(a, y, n);
  else if (from == Lane::i64 && to == Lane::f64)
    convert_loop<int64_t, double>(a, y, n);
}

// --- reductions: independent partial results, so that the loop vectorises and the order is fixed
constexpr int kPartials = 16;

template <class T, class F>
T fold(const T* a, int64_t n, T start, const F& f) {
  T part[kPartials];
  for (T& p : part) p = start;
  int64_t i = 0;
  for (; i + kPartials <= n; i += kPartials)
    for (int k = 0; k < kPartials; ++k) part[k] = f(part[k], a[i + k]);
  for (; i < n; ++i) part[i % kPartials] = f(part[i % kPartials], a[i]);
  for (int width = kPartials / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) part[k] = f(part[k], part[k + width]);
  return part[0];
}

// Asked apart from the comparisons, because each loop alone vectorises.
template <class T>
bool any_nan(const T* a, int64_t n) {
  int any = 0;
  for (int64_t i = 0; i < n; ++i) any |= a[i] != a[i];
  return any != 0;
}

template <class T>
void reduce_real(ReduceMode mode, const T* a, int64_t n, double& acc) {
  constexpr T kInf = T(__builtin_inf());
  switch (mode) {
    case ReduceMode::mul:
      // In double from the first factor on: partial products leave the range of f32 long before the result does.
      for (int64_t i = 0; i < n; ++i) acc *= double(a[i]);
      return;
    case ReduceMode::min: {
      double v =
          any_nan(a, n) ? __builtin_nan("") : double(fold<T>(a, n, kInf, [](T x, T y) { return x < y ? x : y; }));
      acc = acc != acc || acc < v ? acc : v;
      return;
    }
    case ReduceMode::max: {
      double v =
          any_nan(a, n) ? __builtin_nan("") : double(fold<T>(a, n, -kInf, [](T x, T y) { return x > y ? x : y; }));
      acc = acc != acc || acc > v ? acc : v;
      return;
    }
    default:
      acc += double(fold<T>(a, n, T(0), [](T x, T y) { return x + y; }));
  }
}

void reduce(Lane lane, ReduceMode mode, const void* a, int64_t n, Accumulator& acc) {
  if (lane == Lane::f32) return reduce_real(mode, static_cast<const float*>(a), n, acc.real);
  if (lane == Lane::f64) return reduce_real(mode, static_cast<const double*>(a), n, acc.real);
  auto wrap = [](uint64_t v) { return static_cast<int64_t>(v); };
  const auto* p = static_cast<const int64_t*>(a);
  for (int64_t i = 0; i < n; ++i) {
    int64_t& s = acc.integer;
    if (mode == ReduceMode::mul)
      s = wrap(uint64_t(s) * uint64_t(p[i]));
    else if (mode == ReduceMode::min)
      s = p[i] < s ? p[i] : s;
    else if (mode == ReduceMode::max)
      s = p[i] > s ? p[i] : s;
    else
      s = wrap(uint64_t(s) + uint64_t(p[i]));
  }
}

template <class T, class A, class F>
void accumulate_loop(const void* in, int64_t n, void* acc, const F& f) {
  const T* __restrict a = static_cast<const T*>(in);
  A* __restrict s = static_cast<A*>(acc);
  for (int64_t i = 0; i < n; ++i) s[i] = f(s[i], A(a[i]));
}

template <class T, class A>
void accumulate_as(ReduceMode mode, const void* a, int64_t n, void* acc) {
  switch (mode) {
    case ReduceMode::mul:
      return accumulate_loop<T, A>(a, n, acc, [](A x, A y) { return x * y; });
    case ReduceMode::min:
      return accumulate_loop<T, A>(a, n, acc, [](A x, A y) { return y != y || y < x ? y : x; });
    case ReduceMode::max:
      return accumulate_loop<T, A>(a, n, acc, [](A x, A y) { return y != y || y > x ? y : x; });
    default:
      return accumulate_loop<T, A>(a, n, acc, [](A x, A y) { return x + y; });
  }
}

void accumulate(Lane lane, ReduceMode mode, const void* a, int64_t n, void* acc) {
  if (lane == Lane::f32) return accumulate_as<float, double>(mode, a, n, acc);
  if (lane == Lane::f64) return accumulate_as<double, double>(mode, a, n, acc);
  // Sums and products of integers wrap around; comparisons need the sign.
  if (mode == ReduceMode::min || mode == ReduceMode::max) return accumulate_as<int64_t, int64_t>(mode, a, n, acc);
  accumulate_as<uint64_t, uint64_t>(mode, a, n, acc);
}

void fill(Lane lane, const void* one, void* y, int64_t n) {
  if (lane == Lane::f32) {
    float v = *static_cast<const float*>(one);
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(y)[i] = v;
  } else {
    auto v = *static_cast<const uint64_t*>(one);
    for (int64_t i = 0; i < n; ++i) static_cast<uint64_t*>(y)[i] = v;
  }
}

}  // namespace

extern const Kernels kKernels;
#define TESSERA_TEXT2(x) #x
#define TESSERA_TEXT(x) TESSERA_TEXT2(x)
const Kernels kKernels = {
    TESSERA_TEXT(TESSERA_ISA), apply, load, store, stream, fence, round, convert, reduce, accumulate, fill};

}  // namespace tsr::cpu::TESSERA_ISA
