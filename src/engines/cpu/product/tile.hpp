// SPDX-License-Identifier: Apache-2.0
// The inner product of everything that multiplies matrices on the CPU: a tile of C from operands whose inner dimension
// comes first. tile_isa.cpp and narrow_isa.cpp are compiled once for each instruction set; the functions here pick the
// best that the processor has.
#pragma once

#include "engines/cpu/product/pack.hpp"

namespace tsr::cpu {

template <class T>
struct PanelTile {
  int64_t rows, columns;  // of the register block: tiles of multiples of these waste nothing
  // c[i*ldc + j] = sum over p of at[p*lda + i] * b[p*ldb + j], plus c itself when `accumulate`; i < m, j < n, p < k.
  // For narrow T, k, lda and ldb count words, whose elements are multiplied one by one. Rows of b must be readable (not
  // meaningful) up to a multiple of `columns`. One thread.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const T* at, int64_t lda, const T* b, int64_t ldb, SumOf<T>* c,
                   int64_t ldc, bool accumulate);
};

template <class T>
struct BasicTile : PanelTile<T> {
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

// Products of narrow elements.
struct NarrowTiles {
  PanelTile<Bf16> bf16;  // subnormal operands count as 0
  // Bytes of the right operand, signed or not, are multiplied with those of the other kind: where both operands are of
  // one kind (`same`), the left one is packed with its sign bit turned round, and what that adds is taken off again.
  PanelTile<Byte> bytes[2][2];  // [right is signed][same]
  // n words from rows of elements, one row for each element of a word.
  void (*join_pairs)(int64_t n, const Bf16* const* rows, Bf16* to);
  void (*join_bytes)(int64_t n, const Byte* const* rows, Byte* to);
};
const NarrowTiles& narrow_tiles();  // only where the processor has one of:
bool has_bf16_products();
bool has_byte_products();

// The tile that multiplies operands of these types. A left operand of bytes is packed with `flip`.
template <class T>
const PanelTile<T>& panel_tile(DType left, DType right, uint8_t& flip) {
  if constexpr (sizeof(T) >= 4) {
    return tile_of<T>();
  } else if constexpr (sizeof(T) == 2) {
    return narrow_tiles().bf16;
  } else {
    bool same = left == right;
    flip = same ? 0x80 : 0;
    return narrow_tiles().bytes[right == DType::i8][same];
  }
}

}  // namespace tsr::cpu
