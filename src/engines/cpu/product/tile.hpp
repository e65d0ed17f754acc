// SPDX-License-Identifier: Apache-2.0
// The inner product of everything that multiplies matrices on the CPU: a tile of C from operands whose inner dimension
// comes first. tile_isa.cpp, narrow_isa.cpp and amx_isa.cpp are compiled once for each instruction set; the functions
// here pick the best that the processor has.
#pragma once

#include "engines/cpu/product/pack.hpp"

namespace tsr::cpu {

template <class T>
struct PanelTile {
  int64_t rows, columns;  // of the register block: tiles of multiples of these waste nothing
  // c[i*ldc + j] = sum over p of at[p*lda + i] * b[p*ldb + j], plus c itself when `accumulate`; i < m, j < n, p < k.
  // For narrow T, k, lda and ldb count words, whose elements are multiplied one by one. Rows of b must be readable (not
  // meaningful) up to a multiple of `columns`, and a up to a multiple of `rows`. One thread.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const T* at, int64_t lda, const T* b, int64_t ldb, SumOf<T>* c,
                   int64_t ldc, bool accumulate);
  bool left_rows = false;  // the left panel is made of rows, as Panels::rows says
  uint8_t flip = 0;        // what bytes of the left panel are combined with
  // Words of the inner dimension and panels of the left to take at a time, so that they stay in the caches.
  int64_t depth = 256, panels = 12;
  // What a thread does before its first product and after its last.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;
};

// A thread's products with a tile, one after the other.
template <class T>
class TileInUse {
 public:
  explicit TileInUse(const PanelTile<T>& tile) : tile_(tile) {
    if (tile.enter) tile.enter();
  }
  ~TileInUse() {
    if (tile_.leave) tile_.leave();
  }
  TileInUse(const TileInUse&) = delete;
  TileInUse& operator=(const TileInUse&) = delete;

 private:
  const PanelTile<T>& tile_;
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
  PanelTile<Bf16> bf16;         // subnormal operands count as 0
  PanelTile<Byte> bytes[2][2];  // [right is signed][left is of the same kind]
};
const NarrowTiles& narrow_tiles();  // only where the processor has one of:
bool has_bf16_products();
bool has_byte_products();
// The two ways to multiply them: words by vectors, or, where the processor has those, by the tiles of AMX.
const NarrowTiles& vector_tiles();
const NarrowTiles& amx_tiles();
bool has_amx_products();

// n words from rows of elements, one row for each element of a word.
struct Joins {
  void (*pairs)(int64_t n, const Bf16* const* rows, Bf16* to);
  void (*bytes)(int64_t n, const Byte* const* rows, Byte* to);
};
const Joins& joins();  // where there are narrow tiles

// The tile that multiplies operands of these types.
template <class T>
const PanelTile<T>& panel_tile(DType left, DType right) {
  if constexpr (sizeof(T) >= 4)
    return tile_of<T>();
  else if constexpr (sizeof(T) == 2)
    return narrow_tiles().bf16;
  else
    return narrow_tiles().bytes[right == DType::i8][left == right];
}

}  // namespace tsr::cpu
