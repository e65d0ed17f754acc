// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. Reductions of blocks of values that chains do not do themselves: f64 and
// integers, rows side by side, the largest of each few elements.
#include <cstdint>
#include <cstring>
#include <utility>

#include "engines/cpu/vector/isa.hpp"

namespace tsr::cpu::TESSERA_ISA {
namespace {

#include "engines/cpu/vector/vectors.inc"

using tessera::ReduceMode;

// Independent partial results, so that the loop vectorises and the order is fixed
constexpr int kSums = 16;

template <class T, class F>
T fold(const T* a, int64_t n, T start, const F& f) {
  T part[kSums];
  for (T& p : part) p = start;
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int k = 0; k < kSums; ++k) part[k] = f(part[k], a[i + k]);
  for (; i < n; ++i) part[i % kSums] = f(part[i % kSums], a[i]);
  for (int width = kSums / 2; width > 0; width /= 2)
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

// NaN wins.
template <class T>
TESSERA_INLINE T larger(T a, T b) {
  return pick(a != a, a, pick(b <= a, a, b));
}

template <int By>
TESSERA_INLINE F32 rotated(F32 v) {
  return [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(v, v, (K + By) % kLanes...);
  }
  (std::make_integer_sequence<int, kLanes>());
}

TESSERA_INLINE float largest(const float* a, int64_t n) {
  float best = -__builtin_inff();
  int64_t i = 0;
  if (n >= kLanes) {
    F32 v, x;
    std::memcpy(&v, a, sizeof v);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      std::memcpy(&x, a + i, sizeof x);
      v = larger(v, x);
    }
    if constexpr (kLanes > 8) v = larger(v, rotated<8>(v));
    if constexpr (kLanes > 4) v = larger(v, rotated<4>(v));
    v = larger(v, rotated<2>(v));
    v = larger(v, rotated<1>(v));
    best = v[0];
  }
  for (; i < n; ++i) best = larger(best, a[i]);
  return best;
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

}  // namespace

void reduce(Lane lane, ReduceMode mode, const void* a, int64_t n, void* acc) {
  if (lane == Lane::f32) return reduce_real(mode, static_cast<const float*>(a), n, *static_cast<double*>(acc));
  if (lane == Lane::f64) return reduce_real(mode, static_cast<const double*>(a), n, *static_cast<double*>(acc));
  auto wrap = [](uint64_t v) { return static_cast<int64_t>(v); };
  const auto* p = static_cast<const int64_t*>(a);
  for (int64_t i = 0; i < n; ++i) {
    auto& s = *static_cast<int64_t*>(acc);
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

void max_blocks(Lane lane, const void* a, void* y, int64_t block, int64_t n) {
  for (int64_t i = 0; i < n / block; ++i) {
    if (lane == Lane::f32) {
      static_cast<float*>(y)[i] = largest(static_cast<const float*>(a) + i * block, block);
    } else {
      double& best = static_cast<double*>(y)[i];
      best = -__builtin_inf();
      for (int64_t k = i * block; k < (i + 1) * block; ++k) best = larger(best, static_cast<const double*>(a)[k]);
    }
  }
}

void accumulate(Lane lane, ReduceMode mode, const void* a, int64_t n, void* acc) {
  if (lane == Lane::f32) return accumulate_as<float, double>(mode, a, n, acc);
  if (lane == Lane::f64) return accumulate_as<double, double>(mode, a, n, acc);
  // Sums and products of integers wrap around; comparisons need the sign.
  if (mode == ReduceMode::min || mode == ReduceMode::max) return accumulate_as<int64_t, int64_t>(mode, a, n, acc);
  accumulate_as<uint64_t, uint64_t>(mode, a, n, acc);
}

}  // namespace tsr::cpu::TESSERA_ISA
