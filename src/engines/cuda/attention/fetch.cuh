// SPDX-License-Identifier: Apache-2.0
// Elements of sequences as they lie in memory, and what they are worth.
#pragma once

#include "engines/cuda/attention/args.cuh"
#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

// Elements that are read at once.
template <class T>
constexpr int kVector = sizeof(T) == 8   ? 2
                        : sizeof(T) == 4 ? 4
                                         : 8;

template <class O, class T>
Place place_operand(const Operand& x, i32 b) {
  constexpr int V = kVector<T>;
  Place y = place(x, b);
  bool even = x.strides[1] % V == 0 && x.strides[2] % V == 0 && x.strides[3] == 1;
  if (O::kPaged && x.pages.data) {
    y.start = 0;
    y.steps = 0x7fffffff;
    even = even && x.strides[0] % V == 0;
  }
  y.quick = even && y.start % V == 0 && reinterpret_cast<u64>(x.data) % (sizeof(T) * V) == 0 && !x.scales;
  return y;
}

// The factor of a block-scaled element. Tiles of 128 by 4: see graph/ops/block_scale.hpp.
inline float block_scale(const Operand& x, const Place& at, const Spot& s, i32 column) {
  i64 i = s.step / x.scale_steps, j = column / x.scale_columns;
  i64 offset = at.b * x.scale_strides[0] + s.head * x.scale_strides[1];
  if (x.scale_tiles == 0) {
    offset += i * x.scale_strides[2] + j * x.scale_strides[3];
  } else {
    bool along = x.scale_columns > 1;  // blocks run along d
    i64 row = along ? i : j, block = along ? j : i;
    offset += (row / 128 * x.scale_tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
  }
  return to_lane<float>(static_cast<const e8m0*>(x.scales)[offset]);
}

// V elements from `column` on as they lie in memory; 0 where there are none. QUICK: at.quick and no end of the row.
template <bool QUICK, class T, int V>
void fetch(const Operand& x, const Spot& s, i32 width, i32 column, Vec<T, V>& y) {
  const T* data = static_cast<const T*>(x.data) + s.offset;
  if constexpr (QUICK) {
    y = {};
    if (s.offset >= 0) load_vector(data + column, y);
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) y.v[j] = s.offset >= 0 && column + j < width ? data[(column + j) * x.strides[3]] : T{};
  }
}
template <class O, class L, class T>
L widened(const Operand& x, const Place& at, const Spot& s, i32 column, T v) {
  L y = to_lane<L>(v);
  if constexpr (O::kScaled)
    if (x.scales && s.offset >= 0) y *= L(block_scale(x, at, s, column));
  return y;
}

template <class L>
bool is_finite(L v) {
  return v - v == L(0);
}

}  // namespace tsr::dev::attention
