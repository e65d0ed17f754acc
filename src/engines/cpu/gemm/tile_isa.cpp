// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace. The block of C stays in registers
// while the inner dimension runs; each step multiplies a column of A, one broadcast value a row, with vectors of B.
#include <cstring>
#include <utility>

#include "engines/cpu/gemm/tile.hpp"

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
constexpr int kLanes = kBytes / 4;
constexpr int64_t kColumns = int64_t{kLanes} * kVectors;

using Vector = float __attribute__((vector_size(kBytes), aligned(4)));

// `Inner` says that the inner dimension of A comes first, otherwise its rows do.
template <int Rows, bool Inner>
void block(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t n,
           bool accumulate) {
  Vector sum[Rows][kVectors] = {};
  // One pointer for three rows, which x86 addresses as base, base + lda and base + 2 lda: all stay in registers.
  const float* third[(Rows + 2) / 3];
  for (int i = 0; i < Rows; i += 3) third[i / 3] = a + i * lda;
  for (int64_t p = 0; p < k; ++p) {
    Vector right[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&right[v], b + p * ldb + v * kLanes, kBytes);
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
      for (int v = 0; v < kVectors; ++v) sum[i][v] += (Inner ? a[i] : third[i / 3][i % 3 * lda]) * right[v];
    if (Inner) a += lda;
    for (auto& t : third) ++t;
  }
  for (int i = 0; i < Rows; ++i) {
    float* to = c + i * ldc;
    if (n == kColumns) {
      for (int v = 0; v < kVectors; ++v) {
        Vector old = {};
        if (accumulate) std::memcpy(&old, to + v * kLanes, kBytes);
        old += sum[i][v];
        std::memcpy(to + v * kLanes, &old, kBytes);
      }
    } else {
      float part[kColumns];
      std::memcpy(part, sum[i], sizeof part);
      for (int64_t j = 0; j < n; ++j) to[j] = (accumulate ? to[j] : 0.0f) + part[j];
    }
  }
}

using Block = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t, int64_t, bool);

template <bool Inner, size_t... I>
Block block_of(int64_t rows, std::index_sequence<I...>) {
  static constexpr Block kBlocks[] = {block<static_cast<int>(I) + 1, Inner>...};
  return kBlocks[rows - 1];
}

template <bool Inner>
void multiply(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
              int64_t ldc, bool accumulate) {
  for (int64_t j = 0; j < n; j += kColumns) {
    int64_t columns = n - j < kColumns ? n - j : kColumns;
    for (int64_t i = 0; i < m; i += kRows) {
      int64_t rows = m - i < kRows ? m - i : kRows;
      block_of<Inner>(rows, std::make_index_sequence<kRows>())(k, a + (Inner ? i : i * lda), lda, b + j, ldb,
                                                               c + i * ldc + j, ldc, columns, accumulate);
    }
  }
}

void transpose(int64_t rows, int64_t columns, const float* from, int64_t stride, float* to, int64_t ld) {
  constexpr int64_t kSide = 16;  // a square of whole cache lines
  for (int64_t i = 0; i < rows; i += kSide)
    for (int64_t j = 0; j < columns; j += kSide) {
      int64_t r = rows - i < kSide ? rows - i : kSide, c = columns - j < kSide ? columns - j : kSide;
      const float* source = from + i * stride + j;
      float* target = to + j * ld + i;
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
const Tile kTile = {kRows, kColumns, multiply<true>, multiply<false>, transpose};

}  // namespace tsr::cpu::TESSERA_ISA
