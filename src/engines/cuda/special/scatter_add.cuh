// SPDX-License-Identifier: Apache-2.0
// Scatter-add without atomic sums: indices are sorted by the place that they name, then a thread sums each element of
// the result, in the order of the updates.
#pragma once

#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/special/scatter_add_args.cuh"
#include "engines/cuda/special/sort.cuh"

namespace tsr::dev {

inline SortLists sort_lists(const ScatterAddArgs& a) {
  i32* p = static_cast<i32*>(a.workspace);
  return {p, p + a.edges};
}

inline i64 sort_key(const ScatterAddArgs& a, i64 i) {
  i64 at = 0, key = 0;
  for (int d = a.edge_axes - 1; d >= 0; --d) {
    i64 k = cut(i, a.edge_sizes[d]);
    at += k * a.edge_index[d];
    key += k * a.edge_key[d];
  }
  i64 row = read_integer(a.index, a.index_bytes, at);
  return row < 0 || row >= a.size ? -1 : key + row * a.row_key;
}

inline void clear_counts(const ScatterAddArgs& a) {
  i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x, step = i64(gridDim.x) * blockDim.x;
  for (; i < a.rows * a.chunks; i += step) sort_lists(a).counts[i] = 0;
}

template <class L, class U, class X, class Y>
void scatter_add(const ScatterAddArgs& a) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x, u = 0, x = 0, y = 0, key = 0;
  if (rest >= a.elements) return;
  for (int d = a.axes - 1; d >= 0; --d) {
    i64 i = cut(rest, a.sizes[d]);
    u += i * a.at_updates[d];
    x += i * a.at_x[d];
    y += i * a.at_y[d];
    key += i * a.at_key[d];
  }
  L sum = 0;
  if constexpr (!kSame<X, none>) sum = read<L, X>(a.x, x);
  const i32* sorted = sort_lists(a).sorted;
  for (i64 k = sorted_end(a, key - 1), end = sorted_end(a, key); k < end; ++k) {
    i64 edge = sorted[k], at = u;
    for (int d = a.edge_axes - 1; d >= 0; --d) at += cut(edge, a.edge_sizes[d]) * a.edge_updates[d];
    sum += read<L, U>(a.updates, at);
  }
  write<Y>(a.y, y, sum);
}

}  // namespace tsr::dev
