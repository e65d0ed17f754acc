// SPDX-License-Identifier: Apache-2.0
// Aggregation over the edges that arrive at each node of a graph, and its gradient.
#pragma once

#include "device/block.cuh"
#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/special/aggregation_args.cuh"
#include "engines/cuda/special/sort.cuh"

namespace tsr::dev {

// offsets[v], within the edges that exist.
inline i64 edge_offset(const AggregationArgs& a, i64 v) {
  i64 o = read_integer(a.offsets, a.offsets_bytes, v * a.offsets.strides[0]);
  return o < 0 ? 0 : o > a.edges ? a.edges : o;
}
// The row that edge i reads, -1 where there is none.
inline i64 edge_row(const AggregationArgs& a, i64 i) {
  i64 row = a.keys_bytes ? read_integer(a.keys, a.keys_bytes, i * a.keys.strides[0]) : i;
  return row < 0 || row >= a.rows ? -1 : row;
}
inline i64 at_column(const Operand& o, i64 row, i64 column) { return row * o.strides[0] + column * o.strides[1]; }

// Which element of a table a thread treats.
struct TableSpot {
  i64 row, column;
  bool real;
};
inline TableSpot find_cell_of(const AggregationArgs& a, i64 rows) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  TableSpot s{0, 0, rest < rows * a.columns.value};
  if (!s.real) return s;
  s.column = cut(rest, a.columns);
  s.row = rest;
  return s;
}

template <class L, class X, class Y>
void aggregate(const AggregationArgs& a) {
  TableSpot s = find_cell_of(a, a.destinations);
  if (!s.real) return;
  bool largest = a.mode == kAggregateMax, smallest = a.mode == kAggregateMin;
  L result = 0;
  i64 count = 0, winner = -1, end = edge_offset(a, s.row + 1);
  for (i64 i = edge_offset(a, s.row); i < end; ++i) {
    i64 row = edge_row(a, i);
    if (row < 0) continue;
    L v = read<L, X>(a.part, at_column(a.part, row, s.column));
    ++count;
    if (!largest && !smallest) {
      result += v;
    } else if (winner < 0 || (result == result && (v != v || (largest ? v > result : v < result)))) {
      result = v;
      winner = i;
    }
  }
  if (a.mode == kAggregateMean && count > 0) result /= L(count);
  i64 column = a.first_column + s.column;
  if constexpr (!kSame<Y, none>) write<Y>(a.whole, at_column(a.whole, s.row, column), result);
  if (a.positions_bytes == 8) write<i64>(a.positions, at_column(a.positions, s.row, column), winner);
  if (a.positions_bytes == 4) write<i32>(a.positions, at_column(a.positions, s.row, column), winner);
}

// Columns that are handed on: from the part into the whole, or back.
template <class L, class X, class Y, bool BACK>
void copy_columns(const AggregationArgs& a) {
  TableSpot s = find_cell_of(a, a.destinations);
  if (!s.real) return;
  i64 part = at_column(a.part, s.row, s.column), whole = at_column(a.whole, s.row, a.first_column + s.column);
  if constexpr (BACK)
    write<X>(a.part, part, read<L, Y>(a.whole, whole));
  else
    write<Y>(a.whole, whole, read<L, X>(a.part, part));
}

// --- gradient
struct EdgeLists {
  i32 *destination, *fan_in, *sorted, *counts;
};
inline EdgeLists edge_lists(const AggregationArgs& a) {
  i32* p = static_cast<i32*>(a.workspace);
  return {p, p + a.edges, p + a.edges + a.destinations, p + 2 * a.edges + a.destinations};
}

// The destination of each edge, -1 for edges of none; each thread also clears counts.
inline void find_destinations(const AggregationArgs& a) {
  EdgeLists l = edge_lists(a);
  i64 first = i64(blockIdx.x) * blockDim.x + threadIdx.x, step = i64(gridDim.x) * blockDim.x;
  for (i64 i = first; i < a.edges; i += step) {
    i64 low = 0, high = a.destinations + 1;  // the first offset beyond i lies in [low, high]
    while (low < high) {
      i64 middle = (low + high) / 2;
      if (edge_offset(a, middle) > i)
        high = middle;
      else
        low = middle + 1;
    }
    bool real = low >= 1 && low <= a.destinations && edge_row(a, i) >= 0;
    l.destination[i] = real ? i32(low - 1) : -1;
  }
  for (i64 v = first; v < a.destinations; v += step) {
    i32 count = 0;
    for (i64 i = edge_offset(a, v), end = edge_offset(a, v + 1); i < end; ++i) count += edge_row(a, i) >= 0;
    l.fan_in[v] = count;
  }
  for (i64 i = first; i < a.rows * a.chunks; i += step) l.counts[i] = 0;
}

// What sorting by key asks: the row of an edge, or -1, and where the lists are.
inline i64 sort_key(const AggregationArgs& a, i64 i) { return edge_lists(a).destination[i] >= 0 ? edge_row(a, i) : -1; }
inline SortLists sort_lists(const AggregationArgs& a) { return {edge_lists(a).sorted, edge_lists(a).counts}; }

template <class L, class DY, class DX>
void spread(const AggregationArgs& a) {
  TableSpot s = find_cell_of(a, a.rows);
  if (!s.real) return;
  EdgeLists l = edge_lists(a);
  i64 column = a.first_column + s.column, first, end;
  if (a.keys_bytes) {
    first = sorted_end(a, s.row - 1);
    end = sorted_end(a, s.row);
  } else {
    first = s.row;
    end = s.row < a.edges ? s.row + 1 : s.row;
  }
  L sum = 0;
  for (i64 k = first; k < end; ++k) {
    i64 i = a.keys_bytes ? l.sorted[k] : k, v = l.destination[i];
    if (v < 0) continue;
    if (a.positions_bytes && read_integer(a.positions, a.positions_bytes, at_column(a.positions, v, column)) != i)
      continue;
    L g = read<L, DY>(a.whole, at_column(a.whole, v, column));
    sum += a.mode == kAggregateMean ? g / L(l.fan_in[v]) : g;
  }
  write<DX>(a.part, at_column(a.part, s.row, s.column), sum);
}

}  // namespace tsr::dev
