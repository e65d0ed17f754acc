// SPDX-License-Identifier: Apache-2.0
// The inner product of everything that multiplies matrices on the CPU: a tile of C from operands whose inner dimension
// comes first. tile_isa.cpp is compiled once for each instruction set; tile() picks the best that the processor has.
#pragma once

#include <cstdint>

namespace tsr::cpu {

template <class T>
struct BasicTile {
  int64_t rows, columns;  // of the register block: tiles of multiples of these waste nothing
  // c[i*ldc + j] = sum over p of at[p*lda + i] * b[p*ldb + j], plus c itself when `accumulate`; i < m, j < n, p < k.
  // Rows of b must be readable (not meaningful) up to a multiple of `columns`. One thread.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const T* at, int64_t lda, const T* b, int64_t ldb, T* c,
                   int64_t ldc, bool accumulate);
  // The same with a[i*lda + p]: the left operand as it lies in row-major memory.
  void (*multiply_rows)(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
                        int64_t ldc, bool accumulate);
  // to[j*ld + i] = from[i*stride + j] for i < rows, j < columns
  void (*transpose)(int64_t rows, int64_t columns, const T* from, int64_t stride, T* to, int64_t ld);
};

using Tile = BasicTile<float>;

const Tile& tile();
const BasicTile<double>& wide_tile();

template <class T>
const BasicTile<T>& tile_of() {
  if constexpr (sizeof(T) == 8)
    return wide_tile();
  else
    return tile();
}

}  // namespace tsr::cpu
