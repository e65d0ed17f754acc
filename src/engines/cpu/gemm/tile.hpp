// SPDX-License-Identifier: Apache-2.0
// The inner product of everything that multiplies matrices on the CPU: a tile of C from operands whose inner dimension
// comes first. tile_isa.cpp is compiled once for each instruction set; tile() picks the best that the processor has.
#pragma once

#include <cstdint>

namespace tsr::cpu {

struct Tile {
  int64_t rows, columns;  // of the register block: tiles of multiples of these waste nothing
  // c[i*ldc + j] = sum over p of at[p*lda + i] * b[p*ldb + j], plus c itself when `accumulate`; i < m, j < n, p < k.
  // Rows of b must be readable (not meaningful) up to a multiple of `columns`. f32, one thread.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const float* at, int64_t lda, const float* b, int64_t ldb, float* c,
                   int64_t ldc, bool accumulate);
  // The same with a[i*lda + p]: the left operand as it lies in row-major memory.
  void (*multiply_rows)(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                        float* c, int64_t ldc, bool accumulate);
  // to[j*ld + i] = from[i*stride + j] for i < rows, j < columns
  void (*transpose)(int64_t rows, int64_t columns, const float* from, int64_t stride, float* to, int64_t ld);
};

const Tile& tile();

}  // namespace tsr::cpu
