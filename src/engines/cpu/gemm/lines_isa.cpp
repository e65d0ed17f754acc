// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. Sums stay in registers while the terms
// pass.
#include <cstring>
#include <type_traits>
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

using Rows = std::span<const LineRow>;
using GradientRows = std::span<const GradientRow>;

// N vectors of a line, of the last one a part.
constexpr int kVectors = 8;
template <int N>
void line_block(const Part& part, int64_t shift, Rows rows, const LineTaps& taps, float* sum) {
  Vector<kLanes> s[N];
#pragma GCC unroll 8
  for (int v = 0; v < N; ++v) s[v] = v + 1 < N ? load<kLanes>(sum + v * kLanes) : part.load(sum + v * kLanes);
  for (const LineRow& row : rows) {
    const float *from = row.x + shift, *w = row.w + taps.begin;
    for (int64_t at : taps.at) {
      const float* x = from + at;
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) s[v] += (v + 1 < N ? load<kLanes>(x + v * kLanes) : part.load(x + v * kLanes)) * *w;
      w += taps.apart;
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v + 1 < N; ++v) std::memcpy(sum + v * kLanes, &s[v], sizeof s[v]);
  part.store(sum + (N - 1) * kLanes, s[N - 1]);
}

template <size_t... I>
void line_blocks(int64_t n, int64_t shift, Rows rows, const LineTaps& taps, float* sum, std::index_sequence<I...>) {
  using Block = void (*)(const Part&, int64_t, Rows, const LineTaps&, float*);
  static constexpr Block kBlocks[] = {line_block<static_cast<int>(I) + 1>...};
  for (int64_t at = 0; at < n; at += kVectors * kLanes) {
    int64_t rest = n - at, vectors = rest < kVectors * kLanes ? (rest + kLanes - 1) / kLanes : kVectors;
    int64_t last = rest - (vectors - 1) * kLanes;
    kBlocks[vectors - 1](Part(last < kLanes ? last : kLanes), shift + at, rows, taps, sum + at);
  }
}

void positions(int64_t n, int64_t shift, Rows rows, const LineTaps& taps, float* sum) {
  line_blocks(n, shift, rows, taps, sum, std::make_index_sequence<kVectors>());
}

// A vector of channels at N positions.
template <int Lanes, int N>
void channel_block(int64_t step, int64_t apart, int64_t shift, Rows rows, const LineTaps& taps, int64_t channel,
                   float* sum) {
  Vector<Lanes> s[N];
#pragma GCC unroll 8
  for (int p = 0; p < N; ++p) s[p] = load<Lanes>(sum + p * apart + channel);
  for (const LineRow& row : rows) {
    const float *from = row.x + shift + channel, *weight = row.w + taps.begin + channel;
    for (int64_t at : taps.at) {
      Vector<Lanes> w = load<Lanes>(weight);
#pragma GCC unroll 8
      for (int p = 0; p < N; ++p) s[p] += load<Lanes>(from + at + p * step) * w;
      weight += taps.apart;
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < N; ++p) std::memcpy(sum + p * apart + channel, &s[p], sizeof s[p]);
}

template <int Lanes, int N>
void all_channels(int64_t channels, int64_t step, int64_t apart, int64_t shift, Rows rows, const LineTaps& taps,
                  int64_t from, float* sum) {
  for (; channels - from >= Lanes; from += Lanes) channel_block<Lanes, N>(step, apart, shift, rows, taps, from, sum);
  if constexpr (Lanes > 1) all_channels<Lanes / 2, N>(channels, step, apart, shift, rows, taps, from, sum);
}

void channels(int64_t n, int64_t channels, int64_t step, int64_t apart, int64_t shift, Rows rows, const LineTaps& taps,
              float* sum) {
  int64_t at = 0;
  auto run = [&]<int N>(std::integral_constant<int, N>) {
    for (; n - at >= N; at += N)
      all_channels<kLanes, N>(channels, step, apart, shift + at * step, rows, taps, 0, sum + at * apart);
  };
  run(std::integral_constant<int, 8>());
  run(std::integral_constant<int, 2>());
  run(std::integral_constant<int, 1>());
}

// --- gradients of N taps
template <int N>
void line_gradient(int64_t n, const float* x, const int64_t* at, float* sum, int64_t apart, const float* dy) {
  Vector<kLanes> s[N];
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) s[k] = load<kLanes>(sum + k * apart);
  auto add = [&](const auto& get) __attribute__((always_inline)) {
    Vector<kLanes> d = get(dy);
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) s[k] += get(x + at[k]) * d;
  };
  int64_t i = 0;
  for (; n - i >= kLanes; i += kLanes) add([&](const float* from) { return load<kLanes>(from + i); });
  Part part(n - i);
  if (i < n) add([&](const float* from) { return part.load(from + i); });
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) std::memcpy(sum + k * apart, &s[k], sizeof s[k]);
}

template <int Lanes, int N>
void channel_gradient(int64_t n, int64_t channels, int64_t step, const float* x, const int64_t* at, float* sum,
                      int64_t apart, const float* dy, int64_t from) {
  for (; channels - from >= Lanes; from += Lanes) {
    Vector<Lanes> s[N];
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) s[k] = load<Lanes>(sum + k * apart + from);
    for (int64_t p = 0; p < n; ++p) {
      Vector<Lanes> d = load<Lanes>(dy + p * channels + from);
#pragma GCC unroll 8
      for (int k = 0; k < N; ++k) s[k] += load<Lanes>(x + at[k] + p * step + from) * d;
    }
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) std::memcpy(sum + k * apart + from, &s[k], sizeof s[k]);
  }
  if constexpr (Lanes > 1) channel_gradient<Lanes / 2, N>(n, channels, step, x, at, sum, apart, dy, from);
}

// f for eight taps of a row at a time, then for three, then for one: f<N>(x, elements met, sums)
template <class F>
void each_taps(int64_t shift, GradientRows rows, const LineTaps& taps, const F& f) {
  for (const GradientRow& row : rows) {
    size_t k = 0;
    auto run = [&]<int N>(std::integral_constant<int, N> count) {
      for (; taps.at.size() - k >= N; k += N)
        f(count, row.x + shift, taps.at.data() + k, row.sum + taps.begin + static_cast<int64_t>(k) * taps.apart);
    };
    run(std::integral_constant<int, 8>());
    run(std::integral_constant<int, 3>());
    run(std::integral_constant<int, 1>());
  }
}

void positions_gradient(int64_t n, int64_t shift, GradientRows rows, const LineTaps& taps, const float* dy) {
  each_taps(shift, rows, taps,
            [&]<int N>(std::integral_constant<int, N>, const float* x, const int64_t* at, float* sum) {
              line_gradient<N>(n, x, at, sum, taps.apart, dy);
            });
}

void channels_gradient(int64_t n, int64_t channels, int64_t step, int64_t shift, GradientRows rows,
                       const LineTaps& taps, const float* dy) {
  each_taps(shift, rows, taps,
            [&]<int N>(std::integral_constant<int, N>, const float* x, const int64_t* at, float* sum) {
              channel_gradient<kLanes, N>(n, channels, step, x, at, sum, taps.apart, dy, 0);
            });
}

}  // namespace

extern const LineKernels kLineKernels;
const LineKernels kLineKernels = {positions, channels, positions_gradient, channels_gradient};

}  // namespace tsr::cpu::TESSERA_ISA
