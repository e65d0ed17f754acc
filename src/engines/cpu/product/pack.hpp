// SPDX-License-Identifier: Apache-2.0
// Laying out operands for the tile: panels of as many neighbours as the register block holds, in each panel the inner
// dimension first. Elements of any type become T on the way.
//
// Narrow elements share a word of 32 bits with their next inner positions: the processor multiplies and adds up such
// groups in one instruction. The tiles of AMX take rows of such words on the left.
#pragma once

#include <cstddef>

#include "base/dtype.hpp"

namespace tsr::cpu {

// Elements of panels besides float and double.
struct Bf16 {
  uint16_t bits;
};
struct Byte {  // of i8 or u8: the type of the operand says which
  uint8_t bits;
};

// Inner positions that share a word.
template <class T>
constexpr int64_t kGroup = sizeof(T) < 4 ? 4 / int64_t{sizeof(T)} : 1;

// What products of T are summed in.
template <class T>
struct SumType {
  using Type = T;
};
template <>
struct SumType<Bf16> {
  using Type = float;
};
template <>
struct SumType<Byte> {
  using Type = int32_t;
};
template <class T>
using SumOf = typename SumType<T>::Type;

// Words of a neighbour that lie side by side where panels are made of rows.
constexpr int64_t kRowWords = 16;

template <class T>
struct Panels {
  T* at;
  int64_t width;      // neighbours in a panel
  int64_t panel;      // elements from one panel to the next
  int64_t skip = 0;   // inner positions of the first word, or of the first rows, before ours
  uint8_t flip = 0;   // bits of each byte that are turned round, for Byte
  bool rows = false;  // narrow elements: kRowWords words of a neighbour side by side, then those of the next

  // Elements of a neighbour that lie side by side: also the step from one neighbour to the next.
  int64_t run() const { return rows ? kRowWords * kGroup<T> : kGroup<T>; }
  // Where element (i, p) lies. Without groups: at[i / width * panel + p * width + i % width].
  T* place(int64_t i, int64_t p) const {
    int64_t n = run();
    p += skip;
    return at + i / width * panel + p / n * n * width + i % width * n + p % n;
  }
  // The same from inner position p on.
  Panels from(int64_t p) const {
    int64_t n = run();
    p += skip;
    return {at + p / n * n * width, width, panel, p % n, flip, rows};
  }
};

// A matrix in memory: `n` neighbours that lie `stride` apart, with `depth` elements each that lie `inner` apart.
struct StridedMatrix {
  DType type;
  const void* base;
  int64_t offset;
  int64_t n, stride;
  int64_t depth, inner;
};

// Packs all of `m`; its first neighbour becomes number `first` of the panels.
template <class T>
void pack(const StridedMatrix& m, const Panels<T>& to, int64_t first);
// Zeros for `n` neighbours from `first`, inner positions [from, end).
template <class T>
void pack_zeros(const Panels<T>& to, int64_t first, int64_t n, int64_t from, int64_t end);

}  // namespace tsr::cpu
