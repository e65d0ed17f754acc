// SPDX-License-Identifier: Apache-2.0
// Laying out operands for the tile: panels of as many neighbours as the register block holds, in each panel the inner
// dimension first. Elements of any type become T on the way.
#pragma once

#include "base/dtype.hpp"

namespace tsr::cpu {

// Element (i, p) of a packed operand is at[i / width * panel + p * width + i % width].
template <class T>
struct Panels {
  T* at;
  int64_t width;  // neighbours in a panel
  int64_t panel;  // elements from one panel to the next

  T* place(int64_t i, int64_t p) const { return at + i / width * panel + p * width + i % width; }
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
