// SPDX-License-Identifier: Apache-2.0
// Transposition through shared memory. Elements move in squares of E x E, whose rows are vectors of up to 16 bytes: a
// thread turns squares in its registers, so that both sides meet memory in whole vectors. In shared memory a tile is a
// list of lines, one for each of its columns, and square `row` of squares `column` lies at row ^ column of its lines,
// so that neither side meets a bank twice.
#pragma once

#include "device/block.cuh"
#include "device/memory.cuh"
#include "device/words.cuh"
#include "engines/cuda/move/copy.cuh"

namespace tsr::dev {

// Sizes of a tile, in squares and in elements.
template <class From, class To, int E, int DOWN>
struct TileSize {
  static constexpr int kWide = sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To);
  static constexpr int kDown = DOWN, kAcross = tile_squares(kWide, E) / DOWN;
  static constexpr int kRows = kDown * E, kColumns = kAcross * E;
  static constexpr int kTurns = kDown * kAcross / kTileThreads;  // squares of a thread
};

// A tile of the source: where it starts, and how much of it exists.
struct TilePlace {
  i64 row, column;
  i32 rows, columns;
  bool from_words, to_words;
};

// Where square `row` of line `line` lies in a tile.
template <class Size, int E>
u32 place_square(u32 line, u32 row) {
  return line * Size::kDown + (row ^ line / E % Size::kDown);
}

// `row_of(r)` points to the start of row r of the tile; null, where RowOf::kHoles: zeros. What does not exist is loaded
// from the nearest place that does and stored nowhere, so that no branch stands between the loads.
template <class From, class To, int E, int DOWN, class RowOf>
void load_squares(const TilePlace& p, const RowOf& row_of, Vec<To, E>* tile) {
  using Size = TileSize<From, To, E, DOWN>;
  using W = Word<sizeof(To) * E>;
  Vec<From, E> rows[Size::kTurns][E];
#pragma unroll
  for (int u = 0; u < Size::kTurns; ++u) {
    u32 k = u * kTileThreads + threadIdx.x;
    i32 r = i32(k / Size::kAcross) * E, c = min(i32(k % Size::kAcross) * E, p.columns - E);
#pragma unroll
    for (int i = 0; i < E; ++i) {
      const From* from = row_of(min(r + i, p.rows - 1));
      if constexpr (RowOf::kHoles) rows[u][i] = {};
      if (!RowOf::kHoles || from) load_vector(from + c, rows[u][i]);
    }
  }
#pragma unroll
  for (int u = 0; u < Size::kTurns; ++u) {
    u32 k = u * kTileThreads + threadIdx.x, row = k / Size::kAcross, column = k % Size::kAcross;
#pragma unroll
    for (int j = 0; j < E; ++j) {
      Vec<To, E> turned;
#pragma unroll
      for (int i = 0; i < E; ++i) turned.v[i] = convert<To>(rows[u][i].v[j]);
      reinterpret_cast<W*>(tile)[place_square<Size, E>(column * E + j, row)] = reinterpret_cast<const W&>(turned);
    }
  }
}

// The same element by element, neighbouring threads along a row.
template <class From, class To, int E, int DOWN, class RowOf>
void load_singly(const TilePlace& p, const RowOf& row_of, Vec<To, E>* tile) {
  using Size = TileSize<From, To, E, DOWN>;
  constexpr int kEach = Size::kRows * Size::kColumns / kTileThreads, kAtOnce = kEach < 8 ? kEach : 8,
                kStep = kAtOnce * kTileThreads;
#pragma unroll 1
  for (u32 first = threadIdx.x; first < Size::kRows * Size::kColumns; first += kStep) {
    From v[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      u32 k = first + i * kTileThreads;
      const From* from = row_of(min(i32(k / Size::kColumns), p.rows - 1));
      if constexpr (RowOf::kHoles) v[i] = {};
      if (!RowOf::kHoles || from) v[i] = from[min(i32(k % Size::kColumns), p.columns - 1)];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      u32 k = first + i * kTileThreads, row = k / Size::kColumns, line = k % Size::kColumns;
      tile[place_square<Size, E>(line, row / E)].v[row % E] = convert<To>(v[i]);
    }
  }
}

template <class From, class To, int E, int DOWN, class RowOf>
void load_tile(const TilePlace& p, const RowOf& row_of, Vec<To, E>* tile) {
  if (p.from_words)
    load_squares<From, To, E, DOWN>(p, row_of, tile);
  else
    load_singly<From, To, E, DOWN>(p, row_of, tile);
}

template <class From, class To, int E, int DOWN>
void store_squares(const TilePlace& p, const Vec<To, E>* tile, To* to, i64 to_step) {
  using Size = TileSize<From, To, E, DOWN>;
  using W = Word<sizeof(To) * E>;
  constexpr int kTimes = Size::kTurns * E, kLines = kTileThreads / Size::kDown;  // lines at a time
  u32 line = threadIdx.x / Size::kDown, row = threadIdx.x % Size::kDown;
  W turned[kTimes];
#pragma unroll
  for (int u = 0; u < kTimes; ++u)
    turned[u] = reinterpret_cast<const W*>(tile)[place_square<Size, E>(line + u * kLines, row)];
  to += line * to_step + row * E;
  i32 lines = i32(row * E) < p.rows ? p.columns - i32(line) : 0;  // that exist from here on
#pragma unroll
  for (int u = 0; u < kTimes; ++u, to += kLines * to_step)
    if (u * kLines < lines) store_word(to, turned[u]);
}

// Element by element, neighbouring threads along a line.
template <class From, class To, int E, int DOWN>
void store_singly(const TilePlace& p, const Vec<To, E>* tile, To* to, i64 to_step) {
  using Size = TileSize<From, To, E, DOWN>;
#pragma unroll 4
  for (u32 k = threadIdx.x; k < Size::kRows * Size::kColumns; k += kTileThreads) {
    i32 row = i32(k % Size::kRows), line = i32(k / Size::kRows);
    if (row < p.rows && line < p.columns)
      to[line * to_step + row] = tile[place_square<Size, E>(line, row / E)].v[row % E];
  }
}

// `to`: where the tile's first element goes.
template <class From, class To, int E, int DOWN>
void store_tile(const TilePlace& p, const Vec<To, E>* tile, To* to, i64 to_step) {
  if (p.to_words)
    store_squares<From, To, E, DOWN>(p, tile, to, to_step);
  else
    store_singly<From, To, E, DOWN>(p, tile, to, to_step);
}

// Which tile of its matrix a block takes. Blocks go down a few rows of tiles before they go on across: those that run
// at the same time then write neighbouring memory as well as read it.
struct TileOrder {
  i32 matrix, row, column;
};
inline TileOrder find_tile(const Divisor& down, const Divisor& across) {
  i32 block = i32(blockIdx.x), rows = i32(down.value), columns = i32(across.value);
  i32 rest = divide(block, across), matrix = divide(rest, down);
  i32 tile = block - matrix * rows * columns, first = divide(tile, across) / kTileBand * kTileBand;
  i32 band = rows - first < kTileBand ? rows - first : kTileBand, within = tile - first * columns;
  return {matrix, first + within % band, within / band};
}

template <class From, class To, int E, int DOWN>
TilePlace place_tile(const TileOrder& at, i64 rows, i64 columns, bool from_words, bool to_words) {
  using Size = TileSize<From, To, E, DOWN>;
  i64 row = i64(at.row) * Size::kRows, column = i64(at.column) * Size::kColumns;
  return {row,        column,  i32(min(rows - row, i64(Size::kRows))), i32(min(columns - column, i64(Size::kColumns))),
          from_words, to_words};
}

template <class T>
struct EvenRows {
  static constexpr bool kHoles = false;
  const T* first;
  i64 step;
  const T* operator()(i32 row) const { return first + row * step; }
};

template <class From, class To, int E, int DOWN>
void tiles(const TileArgs& a) {
  auto* tile = reinterpret_cast<Vec<To, E>*>(shared_memory());
  TileOrder at = find_tile(a.down, a.across);
  TilePlace p = place_tile<From, To, E, DOWN>(at, a.rows, a.columns, a.from_words, a.to_words);
  i64 from, to;
  locate<1>(a.matrices, &at.matrix, &from, &to);
  EvenRows<From> rows{static_cast<const From*>(a.matrices.from) + from + p.row * a.from_step + p.column, a.from_step};
  load_tile<From, To, E, DOWN>(p, rows, tile);
  __syncthreads();
  store_tile<From, To, E, DOWN>(p, tile, static_cast<To*>(a.matrices.to) + to + p.column * a.to_step + p.row,
                                a.to_step);
}

}  // namespace tsr::dev
