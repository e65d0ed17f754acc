// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. Loops go strip by strip, one vector of
// lanes wide, so that what a lane accumulates stays in a register.
#include <cstring>

#include "engines/cpu/attention/vectors.hpp"

namespace tsr::cpu::attention::TESSERA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kLanes = kBytes / 4;
constexpr float kInf = __builtin_inff();

using Vector = float __attribute__((vector_size(kBytes)));
using Integers = int32_t __attribute__((vector_size(kBytes)));

[[gnu::always_inline]] inline Vector get(const float* p) {
  Vector v;
  std::memcpy(&v, p, kBytes);
  return v;
}
[[gnu::always_inline]] inline Integers get(const int32_t* p) {
  Integers v;
  std::memcpy(&v, p, kBytes);
  return v;
}
[[gnu::always_inline]] inline void put(float* p, Vector v) { std::memcpy(p, &v, kBytes); }

// e^x to 2e-7: x log2(e) = n + r, 2^r by a polynomial with value 1 at 0, n added to the exponent. Results below the
// normal numbers are 0, and so is the result for -inf.
[[gnu::always_inline]] inline Vector exponential(Vector x) {
  constexpr float kLog2e = 1.44269504f, kMagic = 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  Vector t = x * kLog2e + kMagic, n = t - kMagic, r = x * kLog2e - n;
  Vector p = r * 0.00132647276f + 0.00967151265f;
  p = p * r + 0.0555073374f;
  p = p * r + 0.240222421f;
  p = p * r + 0.693146978f;
  p = p * r + 1.0f;
  Vector y = (Vector)((Integers)p + ((Integers)t << 23));
  return x < -87.3f ? Vector{} : y;
}

// The same where x may be large.
[[gnu::always_inline]] inline Vector any_exponential(Vector x) {
  Vector y = exponential(x);
  return x > 88.7f ? Vector{} + kInf : y;
}

bool softmax(int64_t keys, int64_t width, float* s, float* max, float* sum, float* factor) {
  Integers changed = {};
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    Vector before = get(max + lane), largest = before, total = {};
    for (int64_t k = 0; k < keys; ++k) {
      Vector v = get(s + k * width + lane);
      largest = v > largest ? v : largest;
    }
    Vector shift = largest == -kInf ? Vector{} : largest;
    for (int64_t k = 0; k < keys; ++k) {
      Vector p = exponential(get(s + k * width + lane) - shift);
      put(s + k * width + lane, p);
      total += p;
    }
    Vector f = exponential(before - shift);
    put(max + lane, largest);
    put(sum + lane, get(sum + lane) * f + total);
    put(factor + lane, f);
    changed |= f != 1.0f;
  }
  int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= changed[i];
  return any != 0;
}

void probabilities(int64_t keys, int64_t width, float* s, const float* shift, const float* factor) {
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    Vector c = get(shift + lane), f = get(factor + lane);
    for (int64_t k = 0; k < keys; ++k) {
      Vector v = get(s + k * width + lane), p = any_exponential(v - c) * f;
      put(s + k * width + lane, v == -kInf ? Vector{} : p);
    }
  }
}

void gradient(int64_t keys, int64_t width, const float* p, float* dp, const float* delta, float factor) {
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    Vector c = get(delta + lane);
    for (int64_t k = 0; k < keys; ++k) {
      Vector q = get(p + k * width + lane), d = q * (get(dp + k * width + lane) - c) * factor;
      put(dp + k * width + lane, q == 0.0f ? Vector{} : d);
    }
  }
}

void mask(int64_t keys, int64_t width, float* s, const int32_t* first, const int32_t* last) {
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    Integers lo = get(first + lane), hi = get(last + lane);
    for (int64_t k = 0; k < keys; ++k) {
      Integers key = Integers{} + static_cast<int32_t>(k), inside = (key >= lo) & (key < hi);
      put(s + k * width + lane, inside ? get(s + k * width + lane) : Vector{} - kInf);
    }
  }
}

void alibi(int64_t keys, int64_t width, float* s, const float* slope, const int32_t* shift) {
  for (int64_t lane = 0; lane < width; lane += kLanes) {
    Vector f = get(slope + lane);
    Integers start = get(shift + lane);
    for (int64_t k = 0; k < keys; ++k) {
      Vector distance = __builtin_convertvector(start + static_cast<int32_t>(k), Vector);
      put(s + k * width + lane, get(s + k * width + lane) + f * distance);
    }
  }
}

void add(int64_t n, float* __restrict y, const float* __restrict x) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}
void multiply(int64_t n, float* __restrict y, const float* __restrict x) {
  for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
}
void scale(int64_t n, float* y, float factor) {
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

void scale_rows(int64_t rows, int64_t columns, float* o, int64_t ld, const float* factor) {
  for (int64_t r = 0; r < rows; ++r)
    if (factor[r] != 1.0f) scale(columns, o + r * ld, factor[r]);
}

// Sum of a vector by halves; compilers turn the fixed loops into shuffles.
[[gnu::always_inline]] inline float total(Vector v) {
  float part[kLanes];
  std::memcpy(part, &v, kBytes);
#pragma GCC unroll 8
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  return part[0];
}

template <int Keys>
[[gnu::always_inline]] inline void dot(int64_t d, const float* k, int64_t ldk, const float* q, float* s,
                                       int64_t width) {
  Vector sum[Keys] = {};
  int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes) {
    Vector x = get(q + i);
    for (int j = 0; j < Keys; ++j) sum[j] += get(k + j * ldk + i) * x;
  }
  for (int j = 0; j < Keys; ++j) {
    float y = total(sum[j]);
    for (int64_t r = i; r < d; ++r) y += k[j * ldk + r] * q[r];
    s[j * width] = y;
  }
}

void dots(int64_t keys, int64_t rows, int64_t d, const float* k, int64_t ldk, const float* q, int64_t ldq, float* s,
          int64_t width) {
  constexpr int kAtOnce = 4;
  int64_t j = 0;
  for (; j + kAtOnce <= keys; j += kAtOnce)
    for (int64_t r = 0; r < rows; ++r) dot<kAtOnce>(d, k + j * ldk, ldk, q + r * ldq, s + j * width + r, width);
  for (; j < keys; ++j)
    for (int64_t r = 0; r < rows; ++r) dot<1>(d, k + j * ldk, ldk, q + r * ldq, s + j * width + r, width);
}

// base/philox.hpp for neighbouring subsequences side by side: y[4 i + word] is the word of subsequence first + i.
constexpr int kStreams = 16;
void philox_words(uint64_t seed, uint64_t offset, uint64_t first, uint32_t* y) {
  uint32_t a[kStreams], b[kStreams], c[kStreams], d[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    uint64_t subsequence = first + static_cast<uint64_t>(i);
    a[i] = static_cast<uint32_t>(offset), b[i] = static_cast<uint32_t>(offset >> 32);
    c[i] = static_cast<uint32_t>(subsequence), d[i] = static_cast<uint32_t>(subsequence >> 32);
  }
  auto key_low = static_cast<uint32_t>(seed), key_high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, key_low += 0x9E3779B9, key_high += 0xBB67AE85)
    for (int i = 0; i < kStreams; ++i) {
      uint64_t p = uint64_t{0xD2511F53} * a[i], q = uint64_t{0xCD9E8D57} * c[i];
      a[i] = static_cast<uint32_t>(q >> 32) ^ b[i] ^ key_low, b[i] = static_cast<uint32_t>(q);
      c[i] = static_cast<uint32_t>(p >> 32) ^ d[i] ^ key_high, d[i] = static_cast<uint32_t>(p);
    }
  for (int i = 0; i < kStreams; ++i) y[4 * i] = a[i], y[4 * i + 1] = b[i], y[4 * i + 2] = c[i], y[4 * i + 3] = d[i];
}

void keep(uint64_t seed, uint64_t offset, uint64_t first, int64_t n, uint32_t threshold, float* y) {
  constexpr int64_t kWords = int64_t{kStreams} * 4;
  uint32_t words[kWords];
  auto skip = static_cast<int64_t>(first % 4);
  for (int64_t i = -skip; i < n; i += kWords) {
    philox_words(seed, offset, (first + static_cast<uint64_t>(i)) / 4, words);
    int64_t from = i < 0 ? skip : 0, to = n - i < kWords ? n - i : kWords;
    for (int64_t w = from; w < to; ++w) y[i + w] = (words[w] >> 8) < threshold ? 1.0f : 0.0f;
  }
}

// To nearest even with `Mantissa` bits, saturating; below 2^MinExponent in steps of the smallest number.
template <int Mantissa, int MinExponent>
void round_to_bits(int64_t n, float* y, float largest) {
  constexpr uint32_t kDropped = 23 - Mantissa;
  constexpr float kMinNormal = 1.0f / (1 << -MinExponent), kMagic = 12582912.0f * kMinNormal / (1 << Mantissa);
  for (int64_t i = 0; i < n; ++i) {
    float x = y[i], a = __builtin_fabsf(x);
    auto bits = __builtin_bit_cast(uint32_t, a);
    bits = (bits + (1u << (kDropped - 1)) - 1 + ((bits >> kDropped) & 1)) & ~((1u << kDropped) - 1);
    float subnormal = (a + kMagic) - kMagic, normal = __builtin_bit_cast(float, bits);
    float r = a < kMinNormal ? subnormal : normal;
    r = r > largest ? largest : r;
    y[i] = x != x ? x : __builtin_copysignf(r, x);
  }
}

void round_fp8(int64_t n, float* y, bool e4m3) {
  if (e4m3)
    round_to_bits<3, -6>(n, y, 448.0f);
  else
    round_to_bits<2, -14>(n, y, 57344.0f);
}

float max_abs(int64_t n, const float* x) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    float v = __builtin_fabsf(x[i]);
    largest = v > largest ? v : largest;
  }
  int nan = 0;
  for (int64_t i = 0; i < n; ++i) nan |= x[i] != x[i];
  return nan ? __builtin_nanf("") : largest;
}

bool any_nan(int64_t n, const float* x) {
  int nan = 0;
  for (int64_t i = 0; i < n; ++i) nan |= x[i] != x[i];
  return nan != 0;
}

}  // namespace

extern const Vectors kVectors;
const Vectors kVectors = {softmax, probabilities, gradient, mask, alibi,     add,     multiply,
                          scale,   scale_rows,    dots,     keep, round_fp8, max_abs, any_nan};

}  // namespace tsr::cpu::attention::TESSERA_ISA
