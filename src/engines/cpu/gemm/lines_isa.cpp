// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. Sums stay in registers while the terms
// pass.
#include <cstring>
#include <utility>

#include "engines/cpu/gemm/lines.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tsr::cpu::TESSERA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

// Of so many floats, down to one.
template <int Lanes>
struct VectorOf {
  using Type __attribute__((vector_size(4 * Lanes), aligned(4))) = float;
};
template <>
struct VectorOf<1> {
  using Type = float;
};
template <int Lanes>
using Vector = typename VectorOf<Lanes>::Type;
constexpr int kLanes = kBytes / 4;

template <int Lanes>
Vector<Lanes> load(const float* from) {
  Vector<Lanes> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// The first elements of a vector: the others are neither read nor written.
#if defined(__AVX512F__)
struct Part {
  __mmask16 mask;
  explicit Part(int64_t n) : mask(static_cast<__mmask16>((1U << n) - 1)) {}
  Vector<kLanes> load(const float* from) const { return _mm512_maskz_loadu_ps(mask, from); }
  void store(float* to, const Vector<kLanes>& v) const { _mm512_mask_storeu_ps(to, mask, v); }
};
#elif defined(__AVX2__)
struct Part {
  __m256i mask;
  explicit Part(int64_t n)
      : mask(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  Vector<kLanes> load(const float* from) const { return _mm256_maskload_ps(from, mask); }
  void store(float* to, const Vector<kLanes>& v) const { _mm256_maskstore_ps(to, mask, v); }
};
#else
struct Part {
  size_t bytes;
  explicit Part(int64_t n) : bytes(static_cast<size_t>(n) * sizeof(float)) {}
  Vector<kLanes> load(const float* from) const {
    Vector<kLanes> v = {};
    std::memcpy(&v, from, bytes);
    return v;
  }
  void store(float* to, const Vector<kLanes>& v) const { std::memcpy(to, &v, bytes); }
};
#endif

// N vectors of a line, of the last one a part, all taps.
constexpr int kVectors = 8;
template <int N>
void line_block(const Part& part, int64_t terms, const LineTerm* t, int64_t at, float* sum) {
  Vector<kLanes> s[N];
#pragma GCC unroll 8
  for (int v = 0; v < N; ++v) s[v] = v + 1 < N ? load<kLanes>(sum + at + v * kLanes) : part.load(sum + at + v * kLanes);
  for (int64_t k = 0; k < terms; ++k) {
    const float* x = t[k].x + at;
    float w = *t[k].w;
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) s[v] += (v + 1 < N ? load<kLanes>(x + v * kLanes) : part.load(x + v * kLanes)) * w;
  }
#pragma GCC unroll 8
  for (int v = 0; v + 1 < N; ++v) std::memcpy(sum + at + v * kLanes, &s[v], sizeof s[v]);
  part.store(sum + at + (N - 1) * kLanes, s[N - 1]);
}

template <size_t... I>
void line_blocks(int64_t n, int64_t terms, const LineTerm* t, float* sum, std::index_sequence<I...>) {
  using Block = void (*)(const Part&, int64_t, const LineTerm*, int64_t, float*);
  static constexpr Block kBlocks[] = {line_block<static_cast<int>(I) + 1>...};
  for (int64_t at = 0; at < n; at += kVectors * kLanes) {
    int64_t rest = n - at, vectors = rest < kVectors * kLanes ? (rest + kLanes - 1) / kLanes : kVectors;
    int64_t last = rest - (vectors - 1) * kLanes;
    kBlocks[vectors - 1](Part(last < kLanes ? last : kLanes), terms, t, at, sum);
  }
}

void positions(int64_t n, int64_t terms, const LineTerm* t, float* sum) {
  line_blocks(n, terms, t, sum, std::make_index_sequence<kVectors>());
}

// A vector of channels at N positions, all taps.
template <int Lanes, int N>
void channel_block(int64_t step, int64_t apart, int64_t terms, const LineTerm* t, int64_t at, int64_t channel,
                   float* sum) {
  float* to = sum + at * apart + channel;
  Vector<Lanes> s[N];
#pragma GCC unroll 8
  for (int p = 0; p < N; ++p) s[p] = load<Lanes>(to + p * apart);
  for (int64_t k = 0; k < terms; ++k) {
    const float* x = t[k].x + at * step + channel;
    Vector<Lanes> w = load<Lanes>(t[k].w + channel);
#pragma GCC unroll 8
    for (int p = 0; p < N; ++p) s[p] += load<Lanes>(x + p * step) * w;
  }
#pragma GCC unroll 8
  for (int p = 0; p < N; ++p) std::memcpy(to + p * apart, &s[p], sizeof s[p]);
}

template <int Lanes, int N>
void all_channels(int64_t channels, int64_t step, int64_t apart, int64_t terms, const LineTerm* t, int64_t at,
                  int64_t from, float* sum) {
  for (; channels - from >= Lanes; from += Lanes) channel_block<Lanes, N>(step, apart, terms, t, at, from, sum);
  if constexpr (Lanes > 1) all_channels<Lanes / 2, N>(channels, step, apart, terms, t, at, from, sum);
}

void channels(int64_t n, int64_t channels, int64_t step, int64_t apart, int64_t terms, const LineTerm* t, float* sum) {
  int64_t at = 0;
  for (; n - at >= 8; at += 8) all_channels<kLanes, 8>(channels, step, apart, terms, t, at, 0, sum);
  for (; n - at >= 2; at += 2) all_channels<kLanes, 2>(channels, step, apart, terms, t, at, 0, sum);
  for (; n - at >= 1; at += 1) all_channels<kLanes, 1>(channels, step, apart, terms, t, at, 0, sum);
}

// --- gradients of N taps
template <int N>
void line_gradient(int64_t n, const GradientTerm* t, const float* dy) {
  Vector<kLanes> s[N];
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) s[k] = load<kLanes>(t[k].sum);
  auto add = [&](const auto& get) __attribute__((always_inline)) {
    Vector<kLanes> d = get(dy);
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) s[k] += get(t[k].x) * d;
  };
  int64_t at = 0;
  for (; n - at >= kLanes; at += kLanes) add([&](const float* from) { return load<kLanes>(from + at); });
  Part part(n - at);
  if (at < n) add([&](const float* from) { return part.load(from + at); });
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) std::memcpy(t[k].sum, &s[k], sizeof s[k]);
}

void positions_gradient(int64_t n, int64_t terms, const GradientTerm* t, const float* dy) {
  int64_t k = 0;
  for (; terms - k >= 8; k += 8) line_gradient<8>(n, t + k, dy);
  for (; terms - k >= 3; k += 3) line_gradient<3>(n, t + k, dy);
  for (; k < terms; ++k) line_gradient<1>(n, t + k, dy);
}

template <int Lanes, int N>
void channel_gradient(int64_t n, int64_t channels, int64_t step, const GradientTerm* t, const float* dy, int64_t from) {
  for (; channels - from >= Lanes; from += Lanes) {
    Vector<Lanes> s[N];
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) s[k] = load<Lanes>(t[k].sum + from);
    for (int64_t p = 0; p < n; ++p) {
      Vector<Lanes> d = load<Lanes>(dy + p * channels + from);
#pragma GCC unroll 8
      for (int k = 0; k < N; ++k) s[k] += load<Lanes>(t[k].x + p * step + from) * d;
    }
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) std::memcpy(t[k].sum + from, &s[k], sizeof s[k]);
  }
  if constexpr (Lanes > 1) channel_gradient<Lanes / 2, N>(n, channels, step, t, dy, from);
}

void channels_gradient(int64_t n, int64_t channels, int64_t step, int64_t terms, const GradientTerm* t,
                       const float* dy) {
  int64_t k = 0;
  for (; terms - k >= 8; k += 8) channel_gradient<kLanes, 8>(n, channels, step, t + k, dy, 0);
  for (; terms - k >= 3; k += 3) channel_gradient<kLanes, 3>(n, channels, step, t + k, dy, 0);
  for (; k < terms; ++k) channel_gradient<kLanes, 1>(n, channels, step, t + k, dy, 0);
}

}  // namespace

extern const LineKernels kLineKernels;
const LineKernels kLineKernels = {positions, channels, positions_gradient, channels_gradient};

}  // namespace tsr::cpu::TESSERA_ISA
