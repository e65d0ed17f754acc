// SPDX-License-Identifier: Apache-2.0
// Laying out operands for the tile: panels of as many neighbours as the register block holds, in each panel the inner
// dimension first. Elements of any type become T on the way.
//
// Narrow elements share a word of 32 bits with their next inner positions: the processor multiplies and adds up such
// groups in one instruction.
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

template <class T>
struct Panels {
  T* at;
  int64_t width;     // neighbours in a panel
  int64_t panel;     // elements from one panel to the next
  int64_t skip = 0;  // inner positions of the first word before ours
  uint8_t flip = 0;  // bits of each byte that are turned round, for Byte

  // Where element (i, p) lies. Without groups: at[i / width * panel + p * width + i % width].
  T* place(int64_t i, int64_t p) const {
    constexpr int64_t kWord = kGroup<T>;
    p += skip;
    return at + i / width * panel + p / kWord * kWord * width + i % width * kWord + p % kWord;
  }
  // The same from inner position p on.
  Panels from(int64_t p) const {
    constexpr int64_t kWord = kGroup<T>;
    p += skip;
    return {at + p / kWord * kWord * width, width, panel, p % kWord, flip};
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
