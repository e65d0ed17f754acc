// SPDX-License-Identifier: Apache-2.0
// Reductions that end behind the product: threads join what they have of rows, columns or all, blocks join their
// threads, and what blocks leave in memory a last kernel joins, all in a fixed order.
#pragma once

#include "device/epilogue.cuh"
#include "engines/cuda/gemm/space.cuh"

namespace tsr::dev {

// What a thread joins: for each of its columns, V together, for each of its rows, or for all.
template <class C, class Tile, int V, Reduced REDUCED>
struct ThreadParts {
  using Part = typename C::Partial;
  static constexpr int kParts = REDUCED == Reduced::rows      ? Tile::kColumns / V
                                : REDUCED == Reduced::columns ? Tile::kRows
                                                              : 1;
  // What a block has of them, in shared memory.
  static constexpr int kSlots = REDUCED == Reduced::rows      ? Tile::kHeight / Tile::kRows
                                : REDUCED == Reduced::columns ? Tile::kWidth / Tile::kColumns
                                                              : Tile::kThreads;
  static constexpr int kPieces = REDUCED == Reduced::rows      ? Tile::kWidth / V
                                 : REDUCED == Reduced::columns ? Tile::kHeight
                                                               : 1;
  Part part[kParts];

  ThreadParts() {
#pragma unroll
    for (int i = 0; i < kParts; ++i) part[i] = nothing_yet<C>();
  }
  Part& of(int row, int column) {
    return part[REDUCED == Reduced::rows ? column / V : REDUCED == Reduced::columns ? row : 0];
  }
};

template <class C, class Tile, int V, Reduced REDUCED>
struct BlockParts {
  using Mine = ThreadParts<C, Tile, V, REDUCED>;
  typename C::Partial at[Mine::kSlots][Mine::kPieces];
};
template <class C, class Tile, int V>
struct BlockParts<C, Tile, V, Reduced::nothing> {};

// By all threads of a block. `row`: the one of each thread's rows that the block has, the first of its parts; -1: all
// of them. `number`: of the block.
template <class C, class Tile, int V, Reduced REDUCED>
void leave_parts(const GemmArgs& g, const Frame& f, const ThreadParts<C, Tile, V, REDUCED>& mine, int row, u32 number,
                 BlockParts<C, Tile, V, REDUCED>& shared) {
  using Mine = ThreadParts<C, Tile, V, REDUCED>;
  using Part = typename C::Partial;
  auto* left = static_cast<Part*>(g.reduced.left);
  auto joined = [&](int piece) {
    Part p = shared.at[0][piece];
#pragma unroll 1
    for (int slot = 1; slot < Mine::kSlots; ++slot) C::template join<0>(p, shared.at[slot][piece]);
    return p;
  };
  if constexpr (REDUCED == Reduced::rows) {
#pragma unroll
    for (int j = 0; j < Mine::kParts; ++j) shared.at[Tile::row_slot()][Tile::column(j * V) / V] = mine.part[j];
    __syncthreads();
    if (Tile::row_slot() > 0) return;
    i64 slot = (f.batch * g.residues + f.residue) * g.row_tiles + f.first_row / Tile::kHeight;
    if (row >= 0) slot = slot * Tile::kRows + row;
#pragma unroll
    for (int j = 0; j < Mine::kParts; ++j) {
      i64 column = f.first_column + Tile::column(j * V);
      if (column < f.columns) left[slot * g.reduced.pieces + column / V] = joined(Tile::column(j * V) / V);
    }
  } else if constexpr (REDUCED == Reduced::columns) {
    int count = row < 0 ? Mine::kParts : 1, from = row < 0 ? 0 : row;
#pragma unroll
    for (int i = 0; i < Mine::kParts; ++i)
      if (i < count) shared.at[Tile::column_slot()][Tile::row(from + i)] = mine.part[i];
    __syncthreads();
    if (Tile::column_slot() > 0) return;
    i64 slot = f.first_column / Tile::kWidth;
    for (int i = from; i < from + count; ++i) {
      i64 at = f.first_row + Tile::row(i);
      if (at < f.rows) left[slot * g.reduced.pieces + f.batch * g.row_count + at] = joined(Tile::row(i));
    }
  } else {
    shared.at[threadIdx.x][0] = mine.part[0];
#pragma unroll
    for (int half = Tile::kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (int(threadIdx.x) < half) C::template join<0>(shared.at[threadIdx.x][0], shared.at[threadIdx.x + half][0]);
    }
    if (threadIdx.x == 0) left[number] = shared.at[0][0];
  }
}

// The results.
template <class C, int V, Reduced REDUCED, bool LAST>
void reduce_parts(const GemmArgs& g) {
  constexpr int kLanes = REDUCED == Reduced::all ? 1 : 32;
  join_parts<C, kLanes, LAST>(g.epilogue, g.reduced, [&](i64 group, i64 piece, i64* at) {
    i64 row = 0, column = 0, batch = group;
    if constexpr (REDUCED == Reduced::rows) column = piece * V;
    if constexpr (REDUCED == Reduced::columns) batch = piece / g.row_count, row = piece - batch * g.row_count;
    each_axis(g.batch, batch, [&](int i, i64 here) {
      for (int k = 0; k < C::kOperands; ++k) at[k] += here * g.epilogue.operands[k].batch[i];
    });
    locate(g.space.rows, row, [&](int i, i64 here) {
      for (int k = 0; k < C::kOperands; ++k) at[k] += here * g.epilogue.operands[k].rows[i];
    });
    locate(g.space.columns, column, [&](int i, i64 here) {
      for (int k = 0; k < C::kOperands; ++k) at[k] += here * g.epilogue.operands[k].columns[i];
    });
  });
}

}  // namespace tsr::dev
