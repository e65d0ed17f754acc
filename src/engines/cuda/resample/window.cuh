// SPDX-License-Identifier: Apache-2.0
// Which element a thread computes, and the windows that output elements look at.
#pragma once

#include "device/elements.cuh"
#include "engines/cuda/resample/args.cuh"

namespace tsr::dev {

inline i64 quotient(i64 n, const Divisor& d, bool small) { return small ? divide(i32(n), d) : n / d.value; }

// Where a thread works: batch, channel and spatial position in the tensor that it writes.
struct Spot {
  i64 n, c, at[3];
  bool real;
};

// Cuts the lowest coordinate off a running index.
inline i64 cut(i64& rest, const Divisor& size, bool small) {
  i64 above = quotient(rest, size, small), here = rest - above * size.value;
  rest = above;
  return here;
}

template <int V>
Spot find_spot(const ResampleArgs& a, i64 rows) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  Spot s;
  s.real = rest < a.threads;
  if (!s.real) return s;
  if (a.channels_last) {
    s.c = cut(rest, a.channels, a.small) * V;
    // A block covers a tile of rows and columns: what neighbouring windows share comes from its cache.
    i64 row = cut(rest, a.tile, a.small);
    s.at[2] = cut(rest, a.columns, a.small);
    s.at[1] = cut(rest, a.rows, a.small) * a.tile.value + row;
    s.at[0] = cut(rest, a.depth, a.small);
    s.real = s.at[1] < rows;
  } else {
    s.at[2] = cut(rest, a.columns, a.small);
    s.at[1] = cut(rest, a.rows, a.small);
    s.at[0] = cut(rest, a.depth, a.small);
    s.c = cut(rest, a.channels, a.small);
  }
  s.n = rest;
  return s;
}

inline i64 offset_of(const Operand& o, const Spot& s) { return s.n * o.strides[0] + s.c * o.strides[1]; }

// The taps [first, end) of an output element along one axis.
struct Taps {
  i64 first, end;
  i64 rest;  // of the division that gave `first`
};
inline Taps find_taps(const ResampleAxis& axis, i64 o, bool small) {
  i64 n = o * axis.first.scale.value + axis.first.shift, q = quotient(n, axis.first.unit, small);
  i64 end = quotient(o * axis.end.scale.value + axis.end.shift, axis.end.unit, small) - axis.end.base;
  return {q - axis.first.base, end, n - q * axis.first.unit.value};
}

inline i64 clamp_to(i64 v, i64 size) { return v < 0 ? 0 : v >= size ? size - 1 : v; }
inline bool inside(i64 v, i64 size) { return v >= 0 && v < size; }
// Taps that are not padding.
inline i64 count_inside(const Taps& t, i64 size) {
  i64 low = t.first < 0 ? 0 : t.first, high = t.end > size ? size : t.end;
  return high > low ? high - low : 0;
}

}  // namespace tsr::dev
