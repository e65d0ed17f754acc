// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. Loops over blocks for what chains do not run: f64 and integers, conversions
// between memory and lanes, strided memory.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/dtype_table.hpp"
#include "engines/cpu/vector/isa.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tsr::cpu::TESSERA_ISA {
namespace {

#include "engines/cpu/vector/vectors.inc"
// Need the vectors.
#include "engines/cpu/vector/minifloats.inc"
#include "engines/cpu/vector/modes.inc"

using tessera::PointwiseOptions;

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

template <class T, class Modes>
void apply_modes(const ApplyArgs& g, const Modes& modes) {
  if (g.options->mode == M::select) return choose<T>(g);
  modes([&](auto f) { unary<T>(g, f); }, [&](auto f) { binary<T>(g, f); });
}

void real_apply(const ApplyArgs& g) {
  apply_modes<double>(g, [&](const auto& one, const auto& two) {
    real_mode<double>(g.options->mode, parameters(*g.options), one, two);
  });
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
      apply_modes<T>(g, [&](const auto& one, const auto& two) { (void)common_mode<T>(o.mode, one, two); });
  }
}

// An operand times its alpha, in `buffer` when that changes anything.
template <class T>
const void* scaled(const void* a, double alpha, bool scalar, int64_t n, T* buffer) {
  if (!a || alpha == 1) return a;
  int64_t count = scalar ? 1 : n;
  // Products of integers wrap around, as those of their operations do.
  using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  for (int64_t i = 0; i < count; ++i) buffer[i] = T(U(static_cast<const T*>(a)[i]) * U(T(alpha)));
  return buffer;
}

template <class T>
void apply_as(ApplyArgs g, void (*f)(const ApplyArgs&)) {
  T first[kBlock], second[kBlock];
  g.a = scaled(g.a, g.options->alpha1, g.a_scalar, g.n, first);
  g.b = scaled(g.b, g.options->alpha2, g.b_scalar, g.n, second);
  int64_t n = g.n;
  bool scalar = g.a_scalar && (!g.b || g.b_scalar) && (!g.c || g.c_scalar);
  if (scalar) g.n = 1;
  f(g);
  T* y = static_cast<T*>(g.y);
  for (int64_t i = g.n; i < n; ++i) y[i] = y[0];
}

// As a chain of one operation.
void chain_apply(const ApplyArgs& g) {
  auto format = [](bool scalar) { return scalar ? Format::scalar : Format::f32; };
  ChainStep steps[3];
  steps[0].format = format(g.a_scalar), steps[0].slot = 0;
  ChainStep& s = steps[1];
  s.set(*g.options);
  if (g.b) s.format = format(g.b_scalar), s.slot = 1;
  if (g.c) s.third_format = format(g.c_scalar), s.third = 2;
  steps[2].kind = ChainStep::keep_f32, steps[2].third = 3;
  void* slots[] = {const_cast<void*>(g.a), const_cast<void*>(g.b), const_cast<void*>(g.c), g.y};
  run_chain({steps, 3, slots, g.n, false});
}

void apply(Lane lane, const ApplyArgs& g) {
  if (lane == Lane::f32)
    chain_apply(g);
  else if (lane == Lane::f64)
    apply_as<double>(g, real_apply);
  else
    apply_as<int64_t>(g, integer_apply);
}

// --- conversions between memory and lanes
inline float from_half(uint16_t h) { return half_to_float(uint32_t{h}); }
inline float from_bfloat(uint16_t b) { return bfloat_to_float(uint32_t{b}); }
inline uint16_t to_half(float f) { return static_cast<uint16_t>(float_to_half(f)); }
inline uint16_t to_bfloat(float f) { return static_cast<uint16_t>(float_to_bfloat(f)); }
inline float from_e8m0(uint8_t b) { return e8m0_to_float(uint32_t{b}); }
inline uint8_t to_e8m0(float f) { return static_cast<uint8_t>(float_to_e8m0(f)); }

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

// The f32 beside v that is odd, where v lies between two: what is rounded further from there is rounded as v itself.
inline float to_odd(double v) {
  float f = static_cast<float>(v);
  auto back = static_cast<double>(f);
  uint32_t beyond = __builtin_fabs(back) > __builtin_fabs(v) ? 1 : 0, between = back < v || back > v ? 1 : 0;
  return as_float((as_bits(f) - beyond) | between);
}
// What narrow floats are made of.
inline float as_f32(float v) { return v; }
inline float as_f32(double v) { return to_odd(v); }
inline float as_f32(int64_t v) { return to_odd(static_cast<double>(v)); }

// Numbers of 4 bits, two to a byte, from the first of a byte on.
inline int32_t from_i4(uint32_t b) { return static_cast<int32_t>(b ^ 8u) - 8; }
inline int32_t from_u4(uint32_t b) { return static_cast<int32_t>(b); }

template <class T, class F>
void load_pairs(const void* base, int64_t offset, void* out, int64_t n, const F& f) {
  const uint8_t* p = static_cast<const uint8_t*>(base) + offset / 2;
  T* __restrict y = static_cast<T*>(out);
  for (int64_t i = 0; i < n / 2; ++i) {
    uint32_t both = p[i];
    y[2 * i] = static_cast<T>(f(both & 15u));
    y[2 * i + 1] = static_cast<T>(f(both >> 4));
  }
  if (n % 2) y[n - 1] = static_cast<T>(f(p[n / 2] & 15u));
}

template <class T, class F>
void store_pairs(DType type, const void* in, void* base, int64_t offset, int64_t n, const F& f) {
  uint8_t* p = static_cast<uint8_t*>(base) + offset / 2;
  const T* __restrict a = static_cast<const T*>(in);
  for (int64_t i = 0; i < n / 2; ++i) p[i] = static_cast<uint8_t>(f(a[2 * i]) | f(a[2 * i + 1]) << 4);
  if (n % 2) tsr::store<T>(type, base, offset + n - 1, a[n - 1]);
}

// Those of whole bytes, or in pairs; false: none were.
template <class T>
bool load_minifloats(DType type, const void* base, int64_t offset, int64_t stride, T* y, int64_t n) {
  bool done = false;
  with_minifloat(type, [&]<size_t Row>() {
    auto wide = [](uint32_t b) { return minifloat_to_float<Row>(b); };
    constexpr bool kWhole = kDTypes[Row].bits == 8;
    done = kWhole || (stride == 1 && offset % 2 == 0);
    if constexpr (kWhole)
      load_loop<uint8_t, T>(base, offset, stride, y, n, wide);
    else if (done)
      load_pairs<T>(base, offset, y, n, wide);
  });
  return done;
}

template <class T>
bool store_minifloats(DType type, const T* a, void* base, int64_t offset, int64_t stride, int64_t n) {
  bool done = false;
  with_minifloat(type, [&]<size_t Row>() {
    auto narrow = [](T v) { return float_to_minifloat<Row>(as_f32(v)); };
    constexpr bool kWhole = kDTypes[Row].bits == 8;
    done = kWhole || (stride == 1 && offset % 2 == 0);
    if constexpr (kWhole)
      store_loop<uint8_t, T>(a, base, offset, stride, n, [&](T v) { return static_cast<uint8_t>(narrow(v)); });
    else if (done)
      store_pairs<T>(type, a, base, offset, n, narrow);
  });
  return done;
}

// Single bits, byte by byte between the first and the last.
template <class T>
void load_bits(const void* base, int64_t offset, void* out, int64_t n) {
  const uint8_t* p = static_cast<const uint8_t*>(base);
  T* __restrict y = static_cast<T*>(out);
  auto bit = [&](int64_t i) { return static_cast<T>(p[(offset + i) / 8] >> (offset + i) % 8 & 1); };
  int64_t i = 0;
  for (; i < n && (offset + i) % 8 != 0; ++i) y[i] = bit(i);
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) y[i + k] = static_cast<T>(p[(offset + i) / 8] >> k & 1);
  for (; i < n; ++i) y[i] = bit(i);
}

// From the first of a byte on.
template <class T>
void store_bits(const T* a, void* base, int64_t offset, int64_t n) {
  uint8_t* p = static_cast<uint8_t*>(base) + offset / 8;
  for (int64_t i = 0; i + 8 <= n; i += 8) {
    unsigned byte = 0;
    for (int k = 0; k < 8; ++k) byte |= (a[i + k] != 0 ? 1u : 0u) << k;
    p[i / 8] = static_cast<uint8_t>(byte);
  }
  for (int64_t i = n / 8 * 8; i < n; ++i) tsr::store<T>(DType::bit, base, offset + i, a[i]);
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
      return load_loop<uint16_t, T>(base, offset, stride, y, n, from_half);
    case DType::bf16:
      return load_loop<uint16_t, T>(base, offset, stride, y, n, from_bfloat);
    case DType::e8m0:
      return load_loop<uint8_t, T>(base, offset, stride, y, n, from_e8m0);
    case DType::i4:
      if (stride == 1 && offset % 2 == 0) return load_pairs<T>(base, offset, y, n, from_i4);
      break;
    case DType::u4:
      if (stride == 1 && offset % 2 == 0) return load_pairs<T>(base, offset, y, n, from_u4);
      break;
    case DType::bit:
      if (stride == 1) return load_bits<T>(base, offset, y, n);
      break;
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
    default:
      break;
  }
  if (load_minifloats(type, base, offset, stride, static_cast<T*>(y), n)) return;
  T* out = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) out[i] = T(tsr::load<double>(type, base, offset + i * stride));
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
      return store_loop<uint16_t, T>(a, base, offset, stride, n, [](T v) { return to_half(as_f32(v)); });
    case DType::bf16:
      return store_loop<uint16_t, T>(a, base, offset, stride, n, [](T v) { return to_bfloat(as_f32(v)); });
    case DType::e8m0:
      return store_loop<uint8_t, T>(a, base, offset, stride, n, [](T v) { return to_e8m0(as_f32(v)); });
    case DType::i4:
      if (stride == 1 && offset % 2 == 0)
        return store_pairs<T>(type, a, base, offset, n, [f = integer(-8, 7)](T v) { return uint32_t(f(v)) & 15u; });
      break;
    case DType::u4:
      if (stride == 1 && offset % 2 == 0)
        return store_pairs<T>(type, a, base, offset, n, [f = integer(0, 15)](T v) { return uint32_t(f(v)); });
      break;
    case DType::bit:
      if (stride == 1 && offset % 8 == 0) return store_bits(static_cast<const T*>(a), base, offset, n);
      break;
    case DType::i64:
      if constexpr (!(T(0.5) > T(0)))
        return store_loop<int64_t, T>(a, base, offset, stride, n, [](T v) { return int64_t(v); });
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
  if (store_minifloats(type, static_cast<const T*>(a), base, offset, stride, n)) return;
  const T* in = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) tsr::store<T>(type, base, offset + i * stride, in[i]);
}

void load_integers(DType type, const void* base, int64_t offset, int64_t stride, void* y, int64_t n) {
  auto same = [](auto v) { return v; };
  switch (type) {
    case DType::i64:
      return load_loop<int64_t, int64_t>(base, offset, stride, y, n, same);
    case DType::i32:
      return load_loop<int32_t, int64_t>(base, offset, stride, y, n, same);
    case DType::i8:
      return load_loop<int8_t, int64_t>(base, offset, stride, y, n, same);
    case DType::u8:
      return load_loop<uint8_t, int64_t>(base, offset, stride, y, n, same);
    case DType::i4:
      if (stride == 1 && offset % 2 == 0) return load_pairs<int64_t>(base, offset, y, n, from_i4);
      break;
    case DType::u4:
      if (stride == 1 && offset % 2 == 0) return load_pairs<int64_t>(base, offset, y, n, from_u4);
      break;
    case DType::bit:
      if (stride == 1) return load_bits<int64_t>(base, offset, y, n);
      break;
    default:
      break;
  }
  for (int64_t i = 0; i < n; ++i) static_cast<int64_t*>(y)[i] = tsr::load<int64_t>(type, base, offset + i * stride);
}

void load(DType type, Lane lane, const void* base, int64_t offset, int64_t stride, void* y, int64_t n) {
  if (lane == Lane::f32)
    load_as<float>(type, base, offset, stride, y, n);
  else if (lane == Lane::f64)
    load_as<double>(type, base, offset, stride, y, n);
  else
    load_integers(type, base, offset, stride, y, n);
}

void store(DType type, Lane lane, const void* a, void* base, int64_t offset, int64_t stride, int64_t n) {
  if (lane == Lane::f32)
    store_as<float>(type, a, base, offset, stride, n);
  else if (lane == Lane::f64)
    store_as<double>(type, a, base, offset, stride, n);
  else
    store_as<int64_t>(type, a, base, offset, stride, n);
}

void fence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

// What a lane's values become in `type`, read back into the lane.
void round(DType type, Lane lane, const void* a, void* y, int64_t n) {
  if (lane == Lane::f32 && type == DType::bf16)
    return load_loop<float, float>(a, 0, 1, y, n, [](float v) { return from_bfloat(to_bfloat(v)); });
  if (lane == Lane::f32 && type == DType::f16)
    return load_loop<float, float>(a, 0, 1, y, n, [](float v) { return from_half(to_half(v)); });
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
const Kernels kKernels = {TESSERA_TEXT(TESSERA_ISA),
                          apply,
                          run_chain,
                          drain,
                          load,
                          store,
                          fence,
                          round,
                          convert,
                          reduce,
                          max_blocks,
                          accumulate,
                          random,
                          fill};

}  // namespace tsr::cpu::TESSERA_ISA
