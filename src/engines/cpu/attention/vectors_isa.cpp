// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. Loops go strip by strip, one vector of
// lanes wide, so that what a lane accumulates stays in a register.
#include <cstring>

#include "base/dtype_table.hpp"
#include "engines/cpu/attention/vectors.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

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
using Bits = uint32_t __attribute__((vector_size(kBytes)));

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
  Vector y = (Vector)((Bits)p + ((Bits)t << 23));
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

using Four = float __attribute__((vector_size(16)));

[[gnu::always_inline]] inline Four quarters(Vector v) {
  Four part[kLanes / 4], sum;
  std::memcpy(part, &v, kBytes);
  sum = part[0];
  for (int i = 1; i < kLanes / 4; ++i) sum += part[i];
  return sum;
}

// Sums of four vectors.
[[gnu::always_inline]] inline Four totals(Vector x, Vector y, Vector z, Vector w) {
  using Order = int32_t __attribute__((vector_size(16)));
  Four a = quarters(x), b = quarters(y), c = quarters(z), d = quarters(w);
  constexpr Order kLow = {0, 1, 4, 5}, kHigh = {2, 3, 6, 7}, kEven = {0, 2, 4, 6}, kOdd = {1, 3, 5, 7};
  Four ab = __builtin_shuffle(a, b, kLow) + __builtin_shuffle(a, b, kHigh);
  Four cd = __builtin_shuffle(c, d, kLow) + __builtin_shuffle(c, d, kHigh);
  return __builtin_shuffle(ab, cd, kEven) + __builtin_shuffle(ab, cd, kOdd);
}

// Four keys with up to four rows: keys are read once for all of them.
template <int Rows>
void dot_block(int64_t d, const float* const* k, const float* q, int64_t ldq, float* s, int64_t width, int64_t keys) {
  Vector sum[Rows][4] = {};
  int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes)
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < 4; ++j) sum[r][j] += get(q + r * ldq + i) * get(k[j] + i);
  for (int r = 0; r < Rows; ++r) {
    Four y = totals(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    for (int64_t j = 0; j < keys; ++j) {
      float rest = 0;
      for (int64_t x = i; x < d; ++x) rest += k[j][x] * q[r * ldq + x];
      s[j * width + r] = y[j] + rest;
    }
  }
}

void fetch(const Soon& soon, int64_t first, int64_t last) {
  for (int64_t r = first; r < last && r < soon.rows; ++r)
    for (int64_t line = 0; line < soon.bytes; line += 64) __builtin_prefetch(soon.data + r * soon.stride + line, 0, 2);
}

void dots(int64_t keys, int64_t rows, int64_t d, const float* k, int64_t ldk, const float* q, int64_t ldq, float* s,
          int64_t width, const Soon& soon, const Soon& sooner) {
  for (int64_t j = 0; j < keys; j += 4) {
    fetch(sooner, j, j + 4);
    fetch(soon, j, j + 4);
    int64_t count = keys - j < 4 ? keys - j : 4;
    const float* key[4];
    for (int64_t x = 0; x < 4; ++x) key[x] = k + (j + (x < count ? x : 0)) * ldk;  // the first again, at the end
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) dot_block<4>(d, key, q + r * ldq, ldq, s + j * width + r, width, count);
    for (; r < rows; ++r) dot_block<1>(d, key, q + r * ldq, ldq, s + j * width + r, width, count);
  }
}

// base/philox.hpp for neighbouring subsequences side by side, one in each 64-bit lane: only the lower halves count
// until the end. Several vectors at once hide the latency of the products.
using Words = uint64_t __attribute__((vector_size(kBytes)));
constexpr int kStreams = kBytes / 8, kChains = 4;

[[gnu::always_inline]] inline Words product(Words x, uint64_t m) {
#if defined(__AVX512F__)
  return (Words)_mm512_maskz_mul_epu32(0xff, (__m512i)x, _mm512_set1_epi64(static_cast<int64_t>(m)));
#elif defined(__AVX2__)
  return (Words)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(static_cast<int64_t>(m)));
#else
  return (x & 0xffffffffu) * (Words{} + m);
#endif
}

// y[4 i + word] is the word of subsequence first + i.
void philox_words(uint64_t seed, uint64_t offset, uint64_t first, uint32_t* y) {
  Words a[kChains], b[kChains], c[kChains], d[kChains];
  for (int x = 0; x < kChains; ++x) {
    for (int i = 0; i < kStreams; ++i) c[x][i] = first + static_cast<uint64_t>(x * kStreams + i);
    a[x] = Words{} + offset, b[x] = a[x] >> 32, d[x] = c[x] >> 32;
  }
  auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9, high += 0xBB67AE85)
    for (int x = 0; x < kChains; ++x) {
      Words p = product(a[x], 0xD2511F53), q = product(c[x], 0xCD9E8D57);
      a[x] = (q >> 32) ^ b[x] ^ uint64_t { low }, b[x] = q;
      c[x] = (p >> 32) ^ d[x] ^ uint64_t { high }, d[x] = p;
    }
  for (int x = 0; x < kChains; ++x) {
    Words pairs[2] = {(a[x] & 0xffffffffu) | (b[x] << 32), (c[x] & 0xffffffffu) | (d[x] << 32)};
    for (int i = 0; i < kStreams; ++i)
      for (int half = 0; half < 2; ++half) {
        uint64_t pair = pairs[half][i];
        std::memcpy(y + 4 * (x * kStreams + i) + 2 * half, &pair, 8);
      }
  }
}

void keep(uint64_t seed, uint64_t offset, uint64_t first, int64_t n, uint32_t threshold, float* y) {
  constexpr int64_t kWords = int64_t{kStreams} * kChains * 4;
  uint32_t words[kWords];
  auto skip = static_cast<int64_t>(first % 4);
  for (int64_t i = -skip; i < n; i += kWords) {
    philox_words(seed, offset, (first + static_cast<uint64_t>(i)) / 4, words);
    int64_t from = i < 0 ? skip : 0, to = n - i < kWords ? n - i : kWords;
    for (int64_t w = from; w < to; ++w) y[i + w] = (words[w] >> 8) < threshold ? 1.0f : 0.0f;
  }
}

void widen_bf16(int64_t rows, int64_t columns, const uint16_t* x, int64_t stride, float* y, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    const uint16_t* __restrict from = x + r * stride;
    auto* __restrict to = reinterpret_cast<uint32_t*>(y + r * ld);
    for (int64_t i = 0; i < columns; ++i) to[i] = static_cast<uint32_t>(from[i]) << 16;
  }
}

#if defined(__AVX512F__)
template <int Rows>
[[gnu::target("avx512bf16")]] void block_bf16(int64_t pairs, const uint16_t* a, int64_t lda, const uint32_t* b,
                                              int64_t n, float* c, int64_t ldc, float scale) {
  __m512 sum[Rows][2] = {};
  for (int64_t p = 0; p < pairs; ++p) {
    auto left = (__m512bh)_mm512_loadu_si512(b + p * n), right = (__m512bh)_mm512_loadu_si512(b + p * n + 16);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      int32_t pair;
      std::memcpy(&pair, a + i * lda + 2 * p, 4);
      auto x = (__m512bh)_mm512_set1_epi32(pair);
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, left);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, right);
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int v = 0; v < 2; ++v) _mm512_storeu_ps(c + i * ldc + v * 16, sum[i][v] * scale);
}

void multiply_bf16(int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint32_t* b, float* c,
                   int64_t ldc, float scale) {
  constexpr int64_t kRowsAtOnce = 12;
  for (int64_t j = 0; j < n; j += 32) {
    int64_t i = 0;
    for (; i + kRowsAtOnce <= m; i += kRowsAtOnce)
      block_bf16<kRowsAtOnce>(k / 2, a + i * lda, lda, b + j, n, c + i * ldc + j, ldc, scale);
    for (; i < m; ++i) block_bf16<1>(k / 2, a + i * lda, lda, b + j, n, c + i * ldc + j, ldc, scale);
  }
}

#else
constexpr decltype(Vectors::multiply_bf16) multiply_bf16 = nullptr;
#endif

// To nearest even with `Mantissa` bits, saturating; below 2^MinExponent in steps of the smallest number.
template <int Mantissa, int MinExponent>
void round_to_bits(int64_t n, float* y, float largest) {
  constexpr uint32_t kDropped = 23 - Mantissa;
  constexpr float kMinNormal = 1.0f / (int64_t{1} << -MinExponent), kMagic = 12582912.0f * kMinNormal / (1 << Mantissa);
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

void round_fp8(int64_t n, float* y, DType type) {
  with_minifloat(type, [&]<size_t Row>() {
    constexpr FloatFormat kFormat = kDTypes[Row].format;
    round_to_bits<kFormat.fraction, 1 - kFormat.bias()>(n, y, static_cast<float>(largest(type)));
  });
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

// x - x is 0 exactly for finite numbers.
bool finite(int64_t rows, int64_t columns, const float* x, int64_t ld) {
  Integers seen = {};
  bool rest = true;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * ld;
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      Vector v = get(row + i);
      seen |= (Integers)(v - v);
    }
    for (; i < columns; ++i) rest = rest && row[i] - row[i] == 0.0f;
  }
  int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= seen[i];
  return any == 0 && rest;
}

}  // namespace

extern const Vectors kVectors;
const Vectors kVectors = {softmax,    probabilities, gradient, mask,          alibi,      add,       multiply, scale,
                          scale_rows, dots,          keep,     multiply_bf16, widen_bf16, round_fp8, max_abs,  finite};

}  // namespace tsr::cpu::attention::TESSERA_ISA
