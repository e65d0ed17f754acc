// SPDX-License-Identifier: Apache-2.0
// Which element a thread computes, and the windows that output elements look at. N is i32 where 31 bits hold all
// positions, counts and offsets, i64 otherwise.
#pragma once

#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/resample/args.cuh"

namespace tsr::dev {

// Where a thread works: batch, channel and spatial position in the tensor that it writes.
template <class N>
struct Spot {
  N n, c, at[3];
  bool real;

  // Where the plane starts in another tensor.
  N plane(const Operand& o) const { return n * N(o.strides[0]) + c * N(o.strides[1]); }
  N offset(const Operand& o) const {
    return plane(o) + at[0] * N(o.strides[2]) + at[1] * N(o.strides[3]) + at[2] * N(o.strides[4]);
  }
};

template <class N, int V>
Spot<N> find_spot(const ResampleArgs& a, i64 rows) {
  i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  Spot<N> s;
  s.real = thread < a.threads;
  if (!s.real) return s;
  N rest = N(thread);
  if (a.channels_last) {
    s.c = cut(rest, a.channels) * V;
    // A block covers a tile of rows and columns: what neighbouring windows share comes from its cache.
    N row = cut(rest, a.tile);
    s.at[2] = cut(rest, a.columns);
    s.at[1] = cut(rest, a.rows) * N(a.tile.value) + row;
    s.at[0] = cut(rest, a.depth);
    s.real = s.at[1] < rows;
  } else {
    s.at[2] = cut(rest, a.columns);
    s.at[1] = cut(rest, a.rows);
    s.at[0] = cut(rest, a.depth);
    s.c = cut(rest, a.channels) * V;
  }
  s.n = rest;
  return s;
}

// The taps [first, end) of an output element along one axis.
template <class N>
struct Taps {
  N first, end;
  N rest;  // of the division that gave `first`
};
template <class N>
Taps<N> find_taps(const ResampleAxis& axis, N o) {
  N n = o * N(axis.first.scale.value) + N(axis.first.shift), q = divide(n, axis.first.unit);
  N end = divide(o * N(axis.end.scale.value) + N(axis.end.shift), axis.end.unit) - N(axis.end.base);
  return {q - N(axis.first.base), end, n - q * N(axis.first.unit.value)};
}

template <class N>
N clamp_to(N v, N size) {
  return v < 0 ? 0 : v >= size ? size - 1 : v;
}
template <class N>
bool inside(N v, N size) {
  return v >= 0 && v < size;
}
// Taps that are not padding.
template <class N>
N count_inside(const Taps<N>& t, N size) {
  N low = t.first < 0 ? 0 : t.first, high = t.end > size ? size : t.end;
  return high > low ? high - low : 0;
}

}  // namespace tsr::dev
