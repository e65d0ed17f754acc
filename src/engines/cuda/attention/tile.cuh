// SPDX-License-Identifier: Apache-2.0
// Products of tiles through shared memory. Thread (ty, tx) of 16 by 16 holds rows 4 ty ... and columns 4 tx ... of
// them.
#pragma once

#include "engines/cuda/attention/fetch.cuh"
#include "engines/cuda/attention/row_numbers.cuh"
#include "engines/cuda/scores/scores.cuh"

namespace tsr::dev::attention {

// By one thread; the others wait.
template <class O, class TQ, class TK, class TV, class TD, class L>
void read_factors(const AttentionArgs& a, i32 b, Factors<L>& f) {
  read_score_factors<O>(a, f);
  f.do_v = read<L>(a.descale_do) * read<L>(a.descale_v);
  f.scale_dp = read<L>(a.scale_dp);
  f.q = place_operand<O, TQ>(a.q, b);
  f.k = place_operand<O, TK>(a.k, b);
  f.v = place_operand<O, TV>(a.v, b);
  if (a.grad_o.data) f.grad_o = place_operand<O, TD>(a.grad_o, b);
}

inline int tile_x() { return threadIdx.x % 16 * 4; }
inline int tile_y() { return threadIdx.x / 16 * 4; }

template <class L>
TileMemory<L>& tile_memory() {
  return *reinterpret_cast<TileMemory<L>*>(shared_memory());
}

// Columns [first, first + COLUMNS) of 64 rows into shared memory: [row][column], or [column][row] when TURNED. `spot`
// says where a row lies. Returns whether this thread saw only finite numbers.
template <class O, bool QUICK, bool TURNED, int COLUMNS, class T, class L, class Rows>
bool copy_rows(const Operand& x, const Place& at, i32 width, i32 first, L* to, const Rows& spot) {
  constexpr int V = kVector<T>, kPer = COLUMNS / V, kAll = kTile * kPer;
  constexpr int kEach = QUICK ? (kAll + kTileThreads - 1) / kTileThreads : 1;  // that are under way at once
  bool finite = true;
#pragma unroll 1
  for (int start = threadIdx.x; start < kAll; start += kEach * kTileThreads) {
    Vec<T, V> raw[kEach];
    Spot spots[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      int c = start + i * kTileThreads, row = TURNED ? c % kTile : c / kPer;
      spots[i] = c < kAll ? spot(row) : Spot{-1, 0, 0};
      fetch<QUICK>(x, spots[i], width, first + (TURNED ? c / kTile : c % kPer) * V, raw[i]);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      int c = start + i * kTileThreads, row = TURNED ? c % kTile : c / kPer;
      if (c >= kAll) continue;
#pragma unroll
      for (int j = 0; j < V; ++j) {
        int column = (TURNED ? c / kTile : c % kPer) * V + j;
        L e = widened<O, L>(x, at, spots[i], first + column, raw[i].v[j]);
        finite = finite && is_finite(e);
        to[TURNED ? column * kLd + row : row * kLd + column] = e;
      }
    }
  }
  return finite;
}
template <class O, bool TURNED, int COLUMNS, class T, class L, class Rows>
bool load_rows(const Operand& x, const Place& at, i32 width, i32 first, L* to, const Rows& spot) {
  return at.quick && first + COLUMNS <= width ? copy_rows<O, true, TURNED, COLUMNS, T>(x, at, width, first, to, spot)
                                              : copy_rows<O, false, TURNED, COLUMNS, T>(x, at, width, first, to, spot);
}

// acc = A B^T, both 64 rows of `depth` elements. `left` and `right` load a slice of kDepth columns, turned.
template <class L, class Left, class Right>
void product(TileMemory<L>& m, i32 depth, const Left& left, const Right& right, L (&acc)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) acc[i][j] = L(0);
  const L *x = m.operands + tile_y(), *y = m.operands + kDepth * kLd + tile_x();
  for (i32 first = 0; first < depth; first += kDepth) {
    __syncthreads();
    left(first, m.operands);
    right(first, m.operands + kDepth * kLd);
    __syncthreads();
    int count = min(kDepth, depth - first);
#pragma unroll 4
    for (int k = 0; k < count; ++k) {
      Vec<L, 4> p, q;
      load_vector(x + k * kLd, p);
      load_vector(y + k * kLd, q);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] += p.v[i] * q.v[j];
    }
  }
}

// acc += W X. W lies in m.weights, [inner][row]; X is what m.operands holds, [inner][column]. A weight of 0 hides even
// NaN and infinity when CAREFUL.
template <bool CAREFUL, class L>
void multiply(const TileMemory<L>& m, int inner, L (&acc)[4][4]) {
  const L *w = m.weights + tile_y(), *x = m.operands + tile_x();
#pragma unroll 4
  for (int k = 0; k < inner; ++k) {
    Vec<L, 4> p, q;
    load_vector(w + k * kLd, p);
    load_vector(x + k * kLd, q);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (!CAREFUL || p.v[i] != L(0)) acc[i][j] += p.v[i] * q.v[j];
  }
}

// The same for SLICES slices of 64 columns from column `first` on. `load` brings a slice and says whether it was
// finite; `loads` counts slices, so that m.odd needs no clearing.
template <int SLICES, class L, class Load>
void accumulate(TileMemory<L>& m, int inner, i32 width, i32 first, const Load& load, i32& loads,
                L (&acc)[SLICES][4][4]) {
#pragma unroll
  for (int s = 0; s < SLICES; ++s) {
    i32 column = first + s * kTile;
    if (column >= width) break;
    ++loads;
    __syncthreads();
    if (!load(column, m.operands)) m.odd = loads;
    __syncthreads();
    if (m.odd == loads)
      multiply<true>(m, inner, acc[s]);
    else
      multiply<false>(m, inner, acc[s]);
  }
}

// This thread's part of a tile becomes weights: BY_KEY when keys are what is summed over.
template <bool BY_KEY, class L>
void set_weights(TileMemory<L>& m, const L (&p)[4][4]) {
  __syncthreads();  // nobody still multiplies with the last ones
  L* to = m.weights + (BY_KEY ? tile_x() * kLd + tile_y() : tile_y() * kLd + tile_x());
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    Vec<L, 4> line;
#pragma unroll
    for (int j = 0; j < 4; ++j) line.v[j] = BY_KEY ? p[j][i] : p[i][j];
    store_vector(to + i * kLd, line);
  }
}

// Rows of a tile's queries, and of keys [first, ...) below `end`.
template <class O, class L>
auto query_rows(const TileMemory<L>& m, const Operand& x, const Place& at) {
  return [&m, &x, &at](int row) {
    const Row<L>& r = m.rows[row];
    return r.first < r.last ? locate<O>(x, at, r.head, r.query) : Spot{-1, 0, 0};
  };
}
template <class O>
auto key_rows(const Operand& x, const Place& at, i32 head, i32 first, i32 end) {
  return [&x, &at, head, first, end](int row) {
    return first + row < end ? locate<O>(x, at, head, first + row) : Spot{-1, 0, 0};
  };
}

template <class O, class L>
void fill_rows(const AttentionArgs& a, TileMemory<L>& m, i32 b, i32 head, i32 heads, const Span& queries, i64 first) {
  __syncthreads();
  if (threadIdx.x < kTile) m.rows[threadIdx.x] = make_known_row<O, L>(a, b, head, heads, queries, first + threadIdx.x);
  __syncthreads();
}

// What a block does first, and before it turns to another batch.
template <class O, class TQ, class TK, class TV, class TD, class L>
void start_tiles(const AttentionArgs& a, TileMemory<L>& m, i32 b) {
  __syncthreads();
  if (threadIdx.x == 0) {
    m.odd = 0;
    read_factors<O, TQ, TK, TV, TD>(a, b, m.factors);
  }
  __syncthreads();
}

// Does a block mask hide keys [first, first + 64) from all rows? Tiles start at multiples of 64, so that one element of
// the mask answers for each row. The same for all threads.
template <class O, class L>
bool all_hidden(const AttentionArgs& a, const TileMemory<L>& m, i32 b, i32 first) {
  if constexpr (!O::kBlockMask) return false;
  bool seen = false;
  for (int i = threadIdx.x % 32; i < kTile; i += 32)
    seen = seen || (m.rows[i].first < m.rows[i].last && !hidden<O>(a, b, m.rows[i], first));
  return !__any_sync(0xffffffffu, seen);
}

// The largest magnitude that the block met goes to the kernel's place for it.
template <class L>
void write_amax(const AttentionArgs& a, TileMemory<L>& m, int which, L largest) {
  if (!a.amax[which]) return;
  L all = group_reduce<Max, kTileThreads>(largest, m.weights);
  if (threadIdx.x == 0) static_cast<L*>(a.amax[which])[a.first_block + blockIdx.x] = all;
}

}  // namespace tsr::dev::attention
