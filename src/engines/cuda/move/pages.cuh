// SPDX-License-Identifier: Apache-2.0
// Sequences gathered from pages: rows (positions) are found through a table; what lies beyond a sequence's end or
// outside the container is 0.
#pragma once

#include "engines/cuda/move/tiles.cuh"

namespace tsr::dev {

inline i64 read_index(const IndexArg& a, i64 i, i64 j) {
  if (!a.data) return a.value;
  i64 at = i * a.steps[0] + j * a.steps[1];
  return a.wide ? static_cast<const i64*>(a.data)[at] : static_cast<const i32*>(a.data)[at];
}

// Where row `row` of a sequence starts in the container; -1: nowhere.
inline i64 find_row(const PageArgs& a, i64 batch, i64 head, i32 row) {
  if (row >= read_index(a.lengths, batch, 0)) return -1;
  i32 nth = divide(row, a.page_rows);
  i64 page = read_index(a.table, batch, nth);
  if (page < 0 || page >= a.pages) return -1;
  return page * a.from_page + head * a.from_head + (row - nth * i32(a.page_rows.value)) * a.from_row;
}

// Word by word along the columns.
template <class Word, int UNROLL, class Index>
void pages(const PageArgs& a) {
  i64 first = i64(blockIdx.x) * (UNROLL * blockDim.x) + threadIdx.x;
  Word v[UNROLL];
  i64 to[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    i64 index = first + i64(u) * blockDim.x;
    v[u] = {};
    if (index >= a.count) continue;
    Index rest = divide(Index(index), a.columns), sequence = divide(rest, a.rows);
    Index batch = divide(sequence, a.heads), head = sequence - batch * Index(a.heads.value);
    i64 column = Index(index) - rest * Index(a.columns.value);
    i32 row = i32(rest - sequence * Index(a.rows.value));
    to[u] = batch * a.to_batch + head * a.to_head + row * a.to_row + column * a.to_column;
    i64 from = find_row(a, batch, head, row);
    if (from >= 0) v[u] = static_cast<const Word*>(a.from)[from + column * a.from_column];
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (first + i64(u) * blockDim.x < a.count) static_cast<Word*>(a.to)[to[u]] = v[u];
}

template <class T>
struct PagedRows {
  static constexpr bool kHoles = true;
  const PageArgs& a;
  i64 batch, head, row, column;  // where the tile starts

  const T* operator()(i32 r) const {
    i64 from = find_row(a, batch, head, i32(row + r));
    return from < 0 ? nullptr : static_cast<const T*>(a.from) + from + column;
  }
};

// Where the positions of the result lie side by side.
template <class T, int E, int DOWN>
void page_tiles(const PageArgs& a) {
  auto* tile = reinterpret_cast<Vec<T, E>*>(shared_memory());
  TileOrder at = find_tile(a.down, a.across);
  TilePlace p = place_tile<T, T, E, DOWN>(at, a.rows.value, a.columns.value, a.from_words, a.to_words);
  i32 batch = divide(at.matrix, a.heads), head = at.matrix - batch * i32(a.heads.value);
  load_tile<T, T, E, DOWN>(p, PagedRows<T>{a, batch, head, p.row, p.column}, tile);
  __syncthreads();
  i64 to = batch * a.to_batch + head * a.to_head + p.column * a.to_column + p.row;
  store_tile<T, T, E, DOWN>(p, tile, static_cast<T*>(a.to) + to, a.to_column);
}

}  // namespace tsr::dev
