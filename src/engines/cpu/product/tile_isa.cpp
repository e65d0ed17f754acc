// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. The block of C stays in registers
// while the inner dimension runs; each step multiplies a column of A, one broadcast value a row, with vectors of B.
#include <cstring>
#include <utility>

#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu::TESSERA_ISA {
namespace {

// As many accumulators as leave registers for the vectors of B and one broadcast.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 12, kVectors = 2;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRows = 6, kVectors = 2;
#else
constexpr int kBytes = 16, kRows = 4, kVectors = 2;
#endif
template <class T>
constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
template <class T>
constexpr int64_t kColumns = int64_t{kLanes<T>} * kVectors;

template <class T>
struct VectorOf {
  using Type __attribute__((vector_size(kBytes), aligned(4))) = T;
};
template <class T>
using Vector = typename VectorOf<T>::Type;

// `Inner` says that the inner dimension of A comes first, otherwise its rows do.
template <class T, int Rows, bool Inner>
void block(int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t n, bool accumulate) {
  // Rows of C lie far apart, often too far for the processor to foresee.
  for (int i = 0; i < Rows; ++i)
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + i * ldc + v * kLanes<T>, 1);
  // Every loop over sums is unrolled, or they would live in memory.
  Vector<T> sum[Rows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Vector<T>{};
  // One pointer for three rows, which x86 addresses as base, base + lda and base + 2 lda: all stay in registers.
  const T* third[(Rows + 2) / 3];
  for (int i = 0; i < Rows; i += 3) third[i / 3] = a + i * lda;
  for (int64_t p = 0; p < k; ++p) {
    Vector<T> right[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&right[v], b + p * ldb + v * kLanes<T>, kBytes);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] += (Inner ? a[i] : third[i / 3][i % 3 * lda]) * right[v];
    if (Inner) a += lda;
    for (auto& t : third) ++t;
  }
  if (n < kColumns<T>) {
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      T part[kColumns<T>];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) std::memcpy(part + v * kLanes<T>, &sum[i][v], kBytes);
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = (accumulate ? c[i * ldc + j] : T(0)) + part[j];
    }
    return;
  }
  auto store = [&](auto add) {
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        T* to = c + i * ldc + v * kLanes<T>;
        Vector<T> old = {};
        if (add()) std::memcpy(&old, to, kBytes);
        old += sum[i][v];
        std::memcpy(to, &old, kBytes);
      }
  };
  if (accumulate)
    store([] { return true; });
  else
    store([] { return false; });
}

template <class T>
using Block = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t, bool);

template <class T, bool Inner, size_t... I>
Block<T> block_of(int64_t rows, std::index_sequence<I...>) {
  static constexpr Block<T> kBlocks[] = {block<T, static_cast<int>(I) + 1, Inner>...};
  return kBlocks[rows - 1];
}

template <class T, bool Inner>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc,
              bool accumulate) {
  for (int64_t j = 0; j < n; j += kColumns<T>) {
    int64_t columns = n - j < kColumns<T> ? n - j : kColumns<T>;
    for (int64_t i = 0; i < m; i += kRows) {
      int64_t rows = m - i < kRows ? m - i : kRows;
      block_of<T, Inner>(rows, std::make_index_sequence<kRows>())(k, a + (Inner ? i : i * lda), lda, b + j, ldb,
                                                                  c + i * ldc + j, ldc, columns, accumulate);
    }
  }
}

#if defined(__AVX512F__)
// Rows of 16 are swapped pairwise: blocks of 8, then of 4, 2 and 1.
template <int Step>
[[gnu::always_inline]] inline void swap_blocks(Vector<float>* v) {
  using Index [[gnu::vector_size(64)]] = int;
  Index low, high;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    low[i] = (i & Step) ? 16 + i - Step : i;
    high[i] = (i & Step) ? 16 + i : i + Step;
  }
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    int i = (k & ~(Step - 1)) * 2 + (k & (Step - 1));
    Vector<float> a = v[i], b = v[i + Step];
    v[i] = __builtin_shuffle(a, b, low);
    v[i + Step] = __builtin_shuffle(a, b, high);
  }
}

template <int Rows>
void transpose_block(const float* from, int64_t stride, float* to, int64_t ld) {
  Vector<float> v[16] = {};
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    std::memcpy(&v[i], from + i * stride, 64);
    __builtin_prefetch(from + i * stride + 64);  // more rows than the processor follows
  }
  swap_blocks<8>(v);
  swap_blocks<4>(v);
  swap_blocks<2>(v);
  swap_blocks<1>(v);
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) std::memcpy(to + j * ld, &v[j], Rows * sizeof(float));
}
#endif

template <class T>
void transpose(int64_t rows, int64_t columns, const T* from, int64_t stride, T* to, int64_t ld) {
  constexpr int64_t kSide = 16;  // a square of whole cache lines
  for (int64_t i = 0; i < rows; i += kSide)
    for (int64_t j = 0; j < columns; j += kSide) {
      int64_t r = rows - i < kSide ? rows - i : kSide, c = columns - j < kSide ? columns - j : kSide;
      const T* source = from + i * stride + j;
      T* target = to + j * ld + i;
#if defined(__AVX512F__)
      if constexpr (sizeof(T) == 4) {
        if (c == kSide && r == kSide) {
          transpose_block<kSide>(source, stride, target, ld);
          continue;
        }
        if (c == kSide && r == kRows) {
          transpose_block<kRows>(source, stride, target, ld);
          continue;
        }
      }
#endif
      if (r == kSide && c == kSide) {
        for (int64_t x = 0; x < kSide; ++x)
          for (int64_t y = 0; y < kSide; ++y) target[x * ld + y] = source[y * stride + x];
      } else {
        for (int64_t x = 0; x < c; ++x)
          for (int64_t y = 0; y < r; ++y) target[x * ld + y] = source[y * stride + x];
      }
    }
}

}  // namespace

extern const Tile kTile;
const Tile kTile = {{kRows, kColumns<float>, multiply<float, true>}, multiply<float, false>, transpose<float>};
extern const BasicTile<double> kWideTile;
const BasicTile<double> kWideTile = {
    {kRows, kColumns<double>, multiply<double, true>}, multiply<double, false>, transpose<double>};

}  // namespace tsr::cpu::TESSERA_ISA
