// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace; only AVX-512 has anything here. The
// frame of tile_isa.cpp with words of narrow elements, which one instruction multiplies and adds up.
#include "engines/cpu/product/tile.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>

#include <cstring>
#include <utility>

namespace tsr::cpu::TESSERA_ISA {
namespace {

constexpr int kRows = 12, kVectors = 2, kLanes = 16;
constexpr int64_t kColumns = kVectors * kLanes;

// Two products in f32. Subnormal elements count as 0.
struct Pairs {
  using Element = Bf16;
  typedef float Vector __attribute__((vector_size(64)));
  static constexpr bool kSame = false;

  [[gnu::target("avx512bf16"), gnu::always_inline]] static inline Vector add(Vector sum, __m512i a, __m512i b) {
    return (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
  }
};

// Four products of bytes, one of them signed.
template <bool RightSigned, bool Same>
struct Fours {
  using Element = Byte;
  typedef int32_t Vector __attribute__((vector_size(64)));
  static constexpr bool kSame = Same;

  [[gnu::target("avx512vnni"), gnu::always_inline]] static inline Vector add(Vector sum, __m512i a, __m512i b) {
    return (Vector)(RightSigned ? _mm512_dpbusd_epi32((__m512i)sum, a, b) : _mm512_dpbusd_epi32((__m512i)sum, b, a));
  }
};

// Neither instruction is used by a step that does not ask for it: one attribute serves all.
template <class Step, int Rows>
[[gnu::target("avx512bf16,avx512vnni")]] void block(int64_t k, const typename Step::Element* a, int64_t lda,
                                                    const typename Step::Element* b, int64_t ldb,
                                                    SumOf<typename Step::Element>* c, int64_t ldc, int64_t n,
                                                    bool accumulate) {
  using Vector = typename Step::Vector;
  using Sum = SumOf<typename Step::Element>;
  constexpr int64_t kWord = kGroup<typename Step::Element>;
  // Rows of C lie far apart, often too far for the processor to foresee.
  for (int i = 0; i < Rows; ++i)
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + i * ldc + v * kLanes, 1);
  // Every loop over sums is unrolled, or they would live in memory.
  Vector sum[Rows][kVectors], added[kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = added[v] = Vector{};
  // A byte whose sign bit is turned round is 128 more, or read as a signed one 128 less: what every row has too much.
  __m512i turned = _mm512_set1_epi8(-128);
  for (int64_t p = 0; p < k; ++p) {
    __m512i right[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      right[v] = _mm512_loadu_si512(b + (p * ldb + v * kLanes) * kWord);
      if constexpr (Step::kSame) added[v] = Step::add(added[v], turned, right[v]);
    }
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      int32_t word;
      std::memcpy(&word, a + (p * lda + i) * kWord, sizeof word);
      __m512i left = _mm512_set1_epi32(word);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = Step::add(sum[i][v], left, right[v]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      int64_t lanes = n - v * kLanes;
      auto mask = static_cast<__mmask16>(lanes >= kLanes ? 0xffff : lanes <= 0 ? 0 : (1 << lanes) - 1);
      Sum* to = c + i * ldc + v * kLanes;
      Vector total = Step::kSame ? sum[i][v] - added[v] : sum[i][v];
      if (accumulate) total += (Vector)_mm512_maskz_loadu_epi32(mask, to);
      _mm512_mask_storeu_epi32(to, mask, (__m512i)total);
    }
}

template <class Step, size_t... I>
auto block_of(int64_t rows, std::index_sequence<I...>) {
  static constexpr decltype(&block<Step, 1>) kBlocks[] = {block<Step, static_cast<int>(I) + 1>...};
  return kBlocks[rows - 1];
}

template <class Step>
void multiply(int64_t m, int64_t n, int64_t k, const typename Step::Element* at, int64_t lda,
              const typename Step::Element* b, int64_t ldb, SumOf<typename Step::Element>* c, int64_t ldc,
              bool accumulate) {
  constexpr int64_t kWord = kGroup<typename Step::Element>;
  for (int64_t j = 0; j < n; j += kColumns)
    for (int64_t i = 0; i < m; i += kRows)
      block_of<Step>(m - i < kRows ? m - i : kRows, std::make_index_sequence<kRows>())(
          k, at + i * kWord, lda, b + j * kWord, ldb, c + i * ldc + j, ldc, n - j < kColumns ? n - j : kColumns,
          accumulate);
}

void join_pairs(int64_t n, const Bf16* const* rows, Bf16* to) {
  const Bf16 *low = rows[0], *high = rows[1];
  for (int64_t i = 0; i < n; ++i) {
    uint32_t word = low[i].bits | uint32_t{high[i].bits} << 16;
    std::memcpy(to + 2 * i, &word, sizeof word);
  }
}

void join_bytes(int64_t n, const Byte* const* rows, Byte* to) {
  const Byte *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  for (int64_t i = 0; i < n; ++i) {
    uint32_t word = a[i].bits | uint32_t{b[i].bits} << 8 | uint32_t{c[i].bits} << 16 | uint32_t{d[i].bits} << 24;
    std::memcpy(to + 4 * i, &word, sizeof word);
  }
}

// Bytes of the right operand, signed or not, are multiplied with those of the other kind: where both operands are of
// one kind, the left one is packed with its sign bit turned round, and what that adds is taken off again.
template <bool RightSigned, bool Same>
constexpr PanelTile<Byte> kBytes = {kRows, kColumns, multiply<Fours<RightSigned, Same>>, false, Same ? 0x80 : 0};

}  // namespace

extern const NarrowTiles kVectorTiles;
const NarrowTiles kVectorTiles = {
    {kRows, kColumns, multiply<Pairs>},
    {{kBytes<false, false>, kBytes<false, true>}, {kBytes<true, false>, kBytes<true, true>}}};
extern const Joins kJoins;
const Joins kJoins = {join_pairs, join_bytes};

}  // namespace tsr::cpu::TESSERA_ISA
#endif
