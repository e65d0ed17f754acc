// SPDX-License-Identifier: Apache-2.0
// Products with little to share (convolutions in groups of few channels): every thread computes V columns of ROWS rows
// straight from memory, where the caches hold what neighbours read too. Groups are rows or columns here, not batches,
// so an axis may move in both operands.
#pragma once

#include "engines/cuda/gemm/product.cuh"

namespace tsr::dev {

// How V columns lie in an operand.
enum class Lie : int { same, vector, strided };

template <class T, Lie LIE, int POSITIONS>
struct Direct {
  using Type = T;
  static constexpr Lie kLie = LIE;
  static constexpr int kPositions = POSITIONS;
};

template <class L, class D, int V>
void fetch(const typename D::Type* p, i64 step, L (&to)[V]) {
  if constexpr (D::kLie == Lie::vector) {
    Vec<typename D::Type, V> x;
    load_vector(p, x);
    unpack(x, to);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) to[v] = D::kLie == Lie::same && v > 0 ? to[0] : to_lane<L>(p[v * step]);
  }
}

// Where an index along rows or columns leads in the operands.
struct Place {
  i64 a = 0, b = 0;
  i32 at[kSpatial] = {};

  Place(const Axes<kSideAxes>& list, i64 index) {
    locate(list, index, [&](int i, i64 here) {
      const Axis& x = list.axis[i];
      a += here * x.a, b += here * x.b;
#pragma unroll
      for (int d = 0; d < kSpatial; ++d) at[d] += x.dim == d ? i32(here) * x.step : 0;
    });
  }
};

// And where results lie.
template <int OPERANDS>
void locate_results(const GemmArgs& g, i64 row, i64 column, i64 (&to)[OPERANDS]) {
#pragma unroll
  for (int k = 0; k < OPERANDS; ++k) to[k] = 0;
  auto add = [&](const Axes<kSideAxes>& list, i64 index, auto strides) {
    locate(list, index, [&](int i, i64 here) {
#pragma unroll
      for (int k = 0; k < OPERANDS; ++k) to[k] += here * strides(k)[i];
    });
  };
  add(g.space.rows, row, [&](int k) { return g.epilogue.operands[k].rows; });
  add(g.space.columns, column, [&](int k) { return g.epilogue.operands[k].columns; });
}

// Inner positions from `first` on.
template <int DEPTH>
void describe_all(const GemmArgs& g, int first, int count, InnerTable<DEPTH>& table) {
  for (int k = threadIdx.x; k < count; k += blockDim.x) {
    i64 a = 0, b = 0;
    i32 at[kSpatial] = {};
    each_axis(g.space.inner, first + k, [&](int i, i64 here) {
      const Axis& x = g.space.inner.axis[i];
      a += here * x.a, b += here * x.b;
#pragma unroll
      for (int d = 0; d < kSpatial; ++d) at[d] += x.dim == d ? i32(here) * x.step : 0;
    });
    table.offset[0][k] = a, table.offset[1][k] = b;
#pragma unroll
    for (int d = 0; d < kSpatial; ++d) table.at[d][k] = at[d];
  }
  __syncthreads();
}

// A thread's first row and column; false: it has none.
template <int V, int ROWS>
bool find_place(const GemmArgs& g, u32 block, i64& row, i64& column) {
  i64 index = i64(block) * blockDim.x + threadIdx.x, vectors = g.column_count / V;
  i64 group = index < 0x7fffffff && vectors < 0x7fffffff ? i64(u32(index) / u32(vectors)) : index / vectors;
  row = group * ROWS, column = (index - group * vectors) * V;
  return row < g.row_count;
}

// A: what meets positions; B: the other operand, the same for all rows where ROWS > 1.
template <template <int> class Code, int V, int ROWS, class L, class A, class B>
void direct(const GemmArgs& g) {
  using C = Code<V>;
  auto& table = *reinterpret_cast<InnerTable<kDirectDepth>*>(shared_memory());
  u32 splits = u32(g.splits), split = blockIdx.x % splits;
  // Of a split: as many tables as there are for each, but for the last, which has what is left.
  int depth = int(g.depth), tables = (depth + kDirectDepth - 1) / kDirectDepth;
  int each = (tables + int(splits) - 1) / int(splits) * kDirectDepth, begin = int(split) * each;
  int end = depth - begin < each ? depth : begin + each;
  i64 first_row, first_column;
  bool there = find_place<V, ROWS>(g, blockIdx.x / splits, first_row, first_column);
  if (!there) first_row = first_column = 0;
  Place column(g.space.columns, first_column);
  i64 step_a = g.space.columns.count ? g.space.columns.axis[0].a : 0;
  i64 step_b = g.space.columns.count ? g.space.columns.axis[0].b : 0;
  const typename A::Type* a[ROWS];
  const typename B::Type* b = nullptr;
  i32 at[ROWS][kSpatial];
  L sum[ROWS][V] = {};
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    bool real = first_row + i < g.row_count;
    Place row(g.space.rows, real ? first_row + i : first_row);
    i64 offset = column.a + row.a;
#pragma unroll
    for (int d = 0; d < kSpatial; ++d) {
      offset += g.origin[d] * g.position_stride[d];
      // Rows that are not there meet nothing.
      at[i][d] = real ? g.origin[d] + column.at[d] + row.at[d] : -0x40000000;
    }
    a[i] = static_cast<const typename A::Type*>(g.a) + offset;
    if (i == 0) b = static_cast<const typename B::Type*>(g.b) + column.b + row.b;
  }
#pragma unroll 1
  for (int first = begin; first < end; first += kDirectDepth) {
    int terms = end - first < kDirectDepth ? end - first : kDirectDepth;
    if (first > begin) __syncthreads();  // the table before was read
    describe_all(g, first, terms, table);
    for (int k = 0; k < terms; ++k) {
      L y[V];
      fetch<L, B, V>(b + table.offset[1][k], step_b, y);
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        bool inside = first_row + i < g.row_count;
#pragma unroll
        for (int d = 0; d < A::kPositions; ++d) inside = inside && u32(at[i][d] + table.at[d][k]) < u32(g.bounds[d]);
        if (!inside) continue;
        L x[V];
        fetch<L, A, V>(a[i] + table.offset[0][k], step_a, x);
#pragma unroll
        for (int v = 0; v < V; ++v) sum[i][v] += x[v] * y[v];
      }
    }
  }
  if (!there) return;
  typename C::Rows r = known_to_all<C>(g.epilogue);
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    if (first_row + i >= g.row_count) continue;
    if (splits == 1) {
      i64 to[C::kOperands];
      locate_results(g, first_row + i, first_column, to);
      finish_values<C, V>(g.epilogue, to, r, sum[i]);
    } else {
      L* part = static_cast<L*>(g.partials) + (split * g.row_count + first_row + i) * g.column_count + first_column;
#pragma unroll
      for (int v = 0; v < V; ++v) part[v] = sum[i][v];
    }
  }
}

// Adds the parts of sums.
template <template <int> class Code, int V, class L>
void add_parts(const GemmArgs& g) {
  using C = Code<V>;
  i64 first_row, first_column;
  if (!find_place<V, 1>(g, blockIdx.x, first_row, first_column)) return;
  const L* part = static_cast<const L*>(g.partials) + first_row * g.column_count + first_column;
  L sum[V] = {};
#pragma unroll 4
  for (i64 split = 0; split < g.splits; ++split, part += g.row_count * g.column_count)
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] += part[v];
  i64 to[C::kOperands];
  locate_results(g, first_row, first_column, to);
  finish_values<C, V>(g.epilogue, to, known_to_all<C>(g.epilogue), sum);
}

}  // namespace tsr::dev
