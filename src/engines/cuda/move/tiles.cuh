// SPDX-License-Identifier: Apache-2.0
// Transposition through shared memory. Elements move in squares of E x E, whose rows are words of 4 bytes (or single
// larger elements): a thread turns a square in its registers, so that both sides meet memory in whole words. A tile
// is 32 x 32 squares; its lines are one word longer, so that neither side meets a bank of shared memory twice.
#pragma once

#include "device/block.cuh"
#include "device/memory.cuh"
#include "engines/cuda/move/copy.cuh"

namespace tsr::dev {

constexpr int kTileSquares = 32, kTilePitch = kTileSquares + 1, kTileThreads = 256;

// E elements as one number of 2 or 4 bytes: short vectors would be moved element by element.
template <int BYTES>
struct NumberOf {
  using Type = u32;
};
template <>
struct NumberOf<2> {
  using Type = u16;
};
template <class T, int E>
struct Packed {
  union {
    T v[E];
    typename NumberOf<sizeof(T) * E>::Type word;
  };
};
template <class T>
struct Packed<T, 1> {
  union {
    T v[1];
    T word;
  };
};

// A tile of the source, whose first row and column are given.
struct TilePlace {
  i64 row, column, rows, columns;  // of rows x columns in all
  bool from_words, to_words;
};

// `row_of(r)` points to the start of row r of the source; null: zeros.
template <class From, class To, int E, class RowOf>
void load_tile(const TilePlace& p, const RowOf& row_of, Packed<To, E>* tile) {
  constexpr int kLanes = 32 / E;                                      // of a warp along a row
  constexpr int kTurns = kTileSquares * kTileSquares / kTileThreads;  // squares of a thread
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Vec<From, E> rows[kTurns][E];
#pragma unroll
  for (int u = 0; u < kTurns; ++u) {
    int q = u * (kTileThreads / 32) + warp;
    i64 r = p.row + (q / E * E + lane / kLanes) * E, c = p.column + (q % E * kLanes + lane % kLanes) * E;
#pragma unroll
    for (int i = 0; i < E; ++i) {
      rows[u][i] = {};
      if (r + i >= p.rows || c >= p.columns) continue;
      const From* from = row_of(r + i);
      if (!from) continue;
      if (p.from_words && c + E <= p.columns) {
        load_vector(from + c, rows[u][i]);
      } else {
#pragma unroll
        for (int j = 0; j < E; ++j)
          if (c + j < p.columns) rows[u][i].v[j] = from[c + j];
      }
    }
  }
#pragma unroll
  for (int u = 0; u < kTurns; ++u) {
    int q = u * (kTileThreads / 32) + warp;
    int row = q / E * E + lane / kLanes, column = q % E * kLanes + lane % kLanes;
#pragma unroll
    for (int j = 0; j < E; ++j) {
      Packed<To, E> turned;
#pragma unroll
      for (int i = 0; i < E; ++i) turned.v[i] = convert<To>(rows[u][i].v[j]);
      tile[(column * E + j) * kTilePitch + row].word = turned.word;
    }
  }
}

template <class To, int E>
void store_tile(const TilePlace& p, const Packed<To, E>* tile, To* to, i64 to_step) {
  int lane = threadIdx.x % 32;
  i64 r = p.row + lane * E;
  if (r >= p.rows) return;
#pragma unroll
  for (int k = threadIdx.x / 32; k < kTileSquares * E; k += kTileThreads / 32) {
    i64 c = p.column + k;
    if (c >= p.columns) return;
    Packed<To, E> word;
    word.word = tile[k * kTilePitch + lane].word;
    To* target = to + c * to_step + r;
    if (p.to_words && r + E <= p.rows) {
      reinterpret_cast<Packed<To, E>*>(target)->word = word.word;
    } else {
#pragma unroll
      for (int i = 0; i < E; ++i)
        if (r + i < p.rows) target[i] = word.v[i];
    }
  }
}

template <class From, class To, int E>
void tiles(const TileArgs& a) {
  auto* tile = reinterpret_cast<Packed<To, E>*>(shared_memory());
  i32 block = i32(blockIdx.x), rest = divide(block, a.across), matrix = divide(rest, a.down);
  i64 column = block - rest * i32(a.across.value), row = rest - matrix * i32(a.down.value);
  i64 from, to;
  locate<1>(a.matrices, &matrix, &from, &to);
  constexpr int kSide = kTileSquares * E;
  TilePlace p = {row * kSide, column * kSide, a.rows, a.columns, a.from_words, a.to_words};
  const From* source = static_cast<const From*>(a.matrices.from) + from;
  load_tile<From, To, E>(
      p, [&](i64 r) { return source + r * a.from_step; }, tile);
  __syncthreads();
  store_tile(p, tile, static_cast<To*>(a.matrices.to) + to, a.to_step);
}

}  // namespace tsr::dev
