// SPDX-License-Identifier: Apache-2.0
// Gradients of attention, one walk over the tiles for each result: blocks of queries walk along keys for dq, blocks of
// keys along queries for dk and dv. Scores are computed again each time, so that no two blocks share a sum.
#pragma once

#include "engines/cuda/attention/tile.cuh"

namespace tsr::dev::attention {

template <bool FIRST, class A, class B>
struct Choose {
  using type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using type = B;
};

// A tile of queries (in m.rows) meets a tile of keys.
struct Meeting {
  i32 b, k_head, v_head, first, end;  // keys [first, end)
};

// p: probabilities before dropout; `scaled`: the products that score_mod receives.
template <class O, class TQ, class TK, class L>
void tile_probabilities(const AttentionArgs& a, TileMemory<L>& m, const Meeting& t, L (&p)[4][4], L (&scaled)[4][4]) {
  const Factors<L>& f = m.factors;
  auto queries = query_rows<O>(m, a.q, f.q);
  auto keys = key_rows<O>(a.k, f.k, t.k_head, t.first, t.end);
  product(
      m, a.d, [&](i32 c, L* to) { load_rows<O, true, kDepth, TQ>(a.q, f.q, a.d, c, to, queries); },
      [&](i32 c, L* to) { load_rows<O, true, kDepth, TK>(a.k, f.k, a.d, c, to, keys); }, p);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Row<L>& r = m.rows[tile_y() + i];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (O::kBackward) scaled[i][j] = p[i][j] * f.score;
      L s = finish_score<O>(a, t.b, r, t.first + tile_x() + j, p[i][j] * f.score);
      p[i][j] = s == -L(infinity()) ? L(0) : f_exp(s - r.stats);
    }
  }
}

// x *= factors of dropout
template <class O, class L>
void drop_tile(const AttentionArgs& a, const TileMemory<L>& m, const Meeting& t, L (&x)[4][4]) {
  if constexpr (!O::kDrops) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Row<L>& r = m.rows[tile_y() + i];
    if (r.head < 0) continue;
    L keep[4];
    keep_four<O>(a, m.factors, t.b, r.head, r.query, t.first + tile_x(), keep);
#pragma unroll
    for (int j = 0; j < 4; ++j) x[i][j] *= keep[j] * m.factors.keep;
  }
}

// ds: the gradient of what softmax receives.
template <class O, class TV, class TD, class L>
void tile_gradient(const AttentionArgs& a, TileMemory<L>& m, const Meeting& t, const L (&p)[4][4], L (&ds)[4][4]) {
  const Factors<L>& f = m.factors;
  auto queries = query_rows<O>(m, a.grad_o, f.grad_o);
  auto keys = key_rows<O>(a.v, f.v, t.v_head, t.first, t.end);
  product(
      m, a.dv, [&](i32 c, L* to) { load_rows<O, true, kDepth, TD>(a.grad_o, f.grad_o, a.dv, c, to, queries); },
      [&](i32 c, L* to) { load_rows<O, true, kDepth, TV>(a.v, f.v, a.dv, c, to, keys); }, ds);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) ds[i][j] *= f.do_v;
  drop_tile<O>(a, m, t, ds);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) ds[i][j] = p[i][j] == L(0) ? L(0) : p[i][j] * (ds[i][j] - m.rows[tile_y() + i].delta);
}

// The gradient of the products: through score_mod, times the scale, rounded. Returns the largest magnitude so far.
template <class O, class TD, class L>
L product_gradient(const AttentionArgs& a, const TileMemory<L>& m, const Meeting& t, const L (&p)[4][4],
                   const L (&scaled)[4][4], L largest, L (&ds)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Row<L>& r = m.rows[tile_y() + i];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (O::kBackward) {
        i32 key = t.first + tile_x() + j;
        bool seen = p[i][j] != L(0);  // what was masked stays 0
        ds[i][j] = seen ? O::template backward<L>(a, ds[i][j], scaled[i][j], t.b, r.head, r.query, key) : L(0);
      }
      ds[i][j] *= m.factors.scale;
      largest = Max::join(largest, f_abs(ds[i][j]));
      if constexpr (sizeof(TD) == 1)
        if (a.rounds_dp) ds[i][j] = round_as<TD>(ds[i][j] * m.factors.scale_dp);
    }
  }
  return largest;
}

// Stores 64 rows of a result: `locate_row` gives head and step of a row, head -1 for none. Returns the largest
// magnitude so far.
template <class T, int SLICES, class L, class Rows>
L write_gradient(const Sequences& to, i32 b, i32 width, i32 first, i32 length, L factor, L stored, L largest,
                 const Rows& locate_row, const L (&acc)[SLICES][4][4]) {
  Place at = place(to, b);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    Spot s = locate_row(tile_y() + i);
    if (s.head < 0) continue;
    bool there = to.data && holds(to, at, s.step, length);
    i64 offset = row_offset(to, at, s.head, s.step);
#pragma unroll
    for (int c = 0; c < SLICES; ++c)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i32 column = first + c * kTile + tile_x() + j;
        if (column >= width) continue;
        L y = acc[c][i][j] * factor;
        largest = Max::join(largest, f_abs(y));
        if (there) static_cast<T*>(to.data)[offset + column * to.strides[3]] = from_lane<T>(y * stored);
      }
  }
  return largest;
}

// --- dq
// What a block does: `tile` counts those of the group's rows.
struct QueryTask {
  i32 b, head, column, tile;
};
template <int SLICES>
QueryTask query_task(const AttentionArgs& a) {
  i32 index = blockIdx.x, groups = a.hq / a.group;
  QueryTask t;
  t.column = index % a.parts * SLICES * kTile, index /= a.parts;
  t.tile = a.row_tiles - 1 - index % a.row_tiles, index /= a.row_tiles;
  t.head = index % groups * a.group, t.b = index / groups;
  return t;
}

// Largest magnitudes of a result and of the gradients of products.
template <class L>
struct LargestGradient {
  L result, dp;
};

template <class TQ, class TK, class TV, class TD, class TO, int SLICES, class O, class L>
void query_tile(const AttentionArgs& a, TileMemory<L>& m, const QueryTask& q, const Span& span, i64 row,
                LargestGradient<L>& most) {
  i32 b = q.b;
  fill_rows<O>(a, m, b, q.head, a.group, span, row);
  Range keys = range_of(m.rows, kTile);
  L acc[SLICES][4][4] = {};
  i32 loads = 0;
  for (i32 first = keys.lo / kTile * kTile; first < keys.hi; first += kTile) {
    if (all_hidden<O>(a, m, b, first)) continue;
    Meeting t = {b, q.head / (a.hq / a.hk), q.head / (a.hq / a.hv), first, keys.hi};
    L p[4][4], ds[4][4], scaled[4][4];
    tile_probabilities<O, TQ, TK>(a, m, t, p, scaled);
    tile_gradient<O, TV, TD>(a, m, t, p, ds);
    most.dp = product_gradient<O, TD>(a, m, t, p, scaled, most.dp, ds);
    set_weights<true>(m, ds);
    auto rows = key_rows<O>(a.k, m.factors.k, t.k_head, first, keys.hi);
    accumulate<SLICES>(
        m, min(kTile, keys.hi - first), a.d, q.column,
        [&](i32 c, L* to) { return load_rows<O, false, kTile, TK>(a.k, m.factors.k, a.d, c, to, rows); }, loads, acc);
  }
  most.result = write_gradient<TO>(
      a.grad_q, b, a.d, q.column, length_q(a, b), read<L>(a.descale_dp) * read<L>(a.descale_k), read<L>(a.scale_dq),
      most.result,
      [&](int i) {
        return Spot{0, m.rows[i].head, m.rows[i].query};
      },
      acc);
}

template <class L, class TQ, class TK, class TV, class TD, class TO, int SLICES, class O>
void query_gradient(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  QueryTask q = query_task<SLICES>(a);
  LargestGradient<L> most = {L(0), L(0)};
  start_tiles<O, TQ, TK, TV, TD>(a, m, q.b);
  query_tile<TQ, TK, TV, TD, TO, SLICES, O>(a, m, q, counted(a), i64(q.tile) * kTile, most);
  write_amax(a, m, 0, most.result);
  write_amax(a, m, 3, most.dp);
}

// Of packed sequences that are longer than the sizes say: one tile after the other.
template <class L, class TQ, class TK, class TV, class TD, class TO, int SLICES, class O>
void query_gradient_beyond(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  QueryTask q = query_task<SLICES>(a);
  LargestGradient<L> most = {L(0), L(0)};
  start_tiles<O, TQ, TK, TV, TD>(a, m, q.b);
  Span late = beyond(a, q.b);
  for (i32 tile = q.tile; tile < tiles_of(a, late, kTile); tile += a.row_tiles)
    query_tile<TQ, TK, TV, TD, TO, SLICES, O>(a, m, q, late, i64(tile) * kTile, most);
  write_amax(a, m, 0, most.result);
  write_amax(a, m, 3, most.dp);
}

// --- dk, or dv when VALUES. A block takes 64 keys of one head and meets all queries that share them, in groups of
// heads that share k and v both.
struct KeyTask {
  i32 b, own, column, tile;
};
template <bool VALUES, int SLICES>
KeyTask key_task(const AttentionArgs& a) {
  i32 index = blockIdx.x, heads = VALUES ? a.hv : a.hk;
  KeyTask t;
  t.column = index % a.parts * SLICES * kTile, index /= a.parts;
  t.tile = index % a.key_tiles, index /= a.key_tiles;
  t.own = index % heads, t.b = index / heads;
  return t;
}

// Keys [first, first + 64) as far as they lie below `stop`. Returns the largest magnitude so far.
template <bool VALUES, class TQ, class TK, class TV, class TD, class TO, int SLICES, class O, class L>
L key_tile(const AttentionArgs& a, TileMemory<L>& m, const KeyTask& k, i32 first, i32 stop, L largest) {
  i32 b = k.b, heads = VALUES ? a.hv : a.hk, sharers = a.hq / heads, end = min(first + kTile, length_kv(a, b));
  const Operand& x = VALUES ? a.grad_o : a.q;
  using T = typename Choose<VALUES, TD, TQ>::type;
  const Place& at = VALUES ? m.factors.grad_o : m.factors.q;
  i32 width = VALUES ? a.dv : a.d, loads = 0;
  Span queries = all_queries(a, b);
  i32 row_tiles = tiles_of(a, queries, kTile);
  L acc[SLICES][4][4] = {};
  for (i32 head = k.own * sharers; head < (k.own + 1) * sharers; head += a.group)
    for (i32 tile = 0; tile < row_tiles; ++tile) {
      fill_rows<O>(a, m, b, head, a.group, queries, i64(tile) * kTile);
      Range keys = range_of(m.rows, kTile);
      if (keys.lo >= end || keys.hi <= first || all_hidden<O>(a, m, b, first)) continue;
      Meeting t = {b, head / (a.hq / a.hk), head / (a.hq / a.hv), first, min(end, keys.hi)};
      L p[4][4], scaled[4][4];
      tile_probabilities<O, TQ, TK>(a, m, t, p, scaled);
      if constexpr (VALUES) {
        drop_tile<O>(a, m, t, p);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            if constexpr (sizeof(TV) == 1)
              if (a.rounds_p) p[i][j] = round_as<TV>(p[i][j] * m.factors.scale_s);
        set_weights<false>(m, p);
      } else {
        L ds[4][4];
        tile_gradient<O, TV, TD>(a, m, t, p, ds);
        product_gradient<O, TD>(a, m, t, p, scaled, L(0), ds);
        set_weights<false>(m, ds);
      }
      auto rows = query_rows<O>(m, x, at);
      accumulate<SLICES>(
          m, kTile, width, k.column,
          [&](i32 c, L* to) { return load_rows<O, false, kTile, T>(x, at, width, c, to, rows); }, loads, acc);
    }
  L factor = VALUES ? read<L>(a.descale_s) * read<L>(a.descale_do) : read<L>(a.descale_dp) * read<L>(a.descale_q);
  return write_gradient<TO>(
      VALUES ? a.grad_v : a.grad_k, b, width, k.column, length_kv(a, b), factor,
      read<L>(VALUES ? a.scale_dv : a.scale_dk), largest,
      [&](int i) {
        return Spot{0, first + i < stop ? k.own : -1, first + i};
      },
      acc);
}

template <bool VALUES, class L, class TQ, class TK, class TV, class TD, class TO, int SLICES, class O>
void key_gradient(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  KeyTask k = key_task<VALUES, SLICES>(a);
  start_tiles<O, TQ, TK, TV, TD>(a, m, k.b);
  L largest = key_tile<VALUES, TQ, TK, TV, TD, TO, SLICES, O>(a, m, k, k.tile * kTile, a.skv, L(0));
  write_amax(a, m, VALUES ? 2 : 1, largest);
}

// Of packed sequences that are longer than the sizes say: one tile after the other.
template <bool VALUES, class L, class TQ, class TK, class TV, class TD, class TO, int SLICES, class O>
void key_gradient_beyond(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  KeyTask k = key_task<VALUES, SLICES>(a);
  start_tiles<O, TQ, TK, TV, TD>(a, m, k.b);
  L largest = L(0);
  i32 length = length_kv(a, k.b);
  for (i32 first = a.skv + k.tile * kTile; first < length; first += a.key_tiles * kTile)
    largest = key_tile<VALUES, TQ, TK, TV, TD, TO, SLICES, O>(a, m, k, first, length, largest);
  write_amax(a, m, VALUES ? 2 : 1, largest);
}

// --- dbias: one tile of it from all tiles of scores that it was added to, or from one part of them.
template <class L, class TQ, class TK, class TV, class TD, class O>
void bias_gradient(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  const i64* size = a.dbias_sizes;
  auto tiles = [](i64 n) { return (n + kTile - 1) / kTile; };
  i64 index = blockIdx.x, across = tiles(size[3]), down = tiles(size[2]);
  i32 split = i32(index % a.splits);
  index /= a.splits;
  i64 key_tile = index % across, query_tile = index / across % down;
  i64 h = index / across / down % size[1], batch = index / across / down / size[1];
  // Along dimensions that the bias does not have, everything is added up.
  i64 n_b = size[0] == 1 ? a.b : 1, n_h = size[1] == 1 ? a.hq : 1;
  i64 n_q = size[2] == 1 ? tiles(a.sq) : 1, n_k = size[3] == 1 ? tiles(a.skv) : 1;
  i64 all = n_b * n_h * n_q * n_k, each = (all + a.splits - 1) / a.splits;
  L acc[4][4] = {};
  for (i64 i = split * each; i < (split + 1) * each && i < all; ++i) {
    i32 first = i32((n_k == 1 ? key_tile : i % n_k) * kTile);
    i64 row = (n_q == 1 ? query_tile : i / n_k % n_q) * kTile;
    i32 head = i32(n_h == 1 ? h : i / n_k / n_q % n_h), b = i32(n_b == 1 ? batch : i / n_k / n_q / n_h);
    start_tiles<O, TQ, TK, TV, TD>(a, m, b);
    fill_rows<O>(a, m, b, head, 1, counted(a), row);
    Range keys = range_of(m.rows, kTile);
    if (keys.lo >= first + kTile || keys.hi <= first || all_hidden<O>(a, m, b, first)) continue;
    Meeting t = {b, head / (a.hq / a.hk), head / (a.hq / a.hv), first, keys.hi};
    L p[4][4], ds[4][4], scaled[4][4];
    tile_probabilities<O, TQ, TK>(a, m, t, p, scaled);
    tile_gradient<O, TV, TD>(a, m, t, p, ds);
#pragma unroll
    for (int y = 0; y < 4; ++y)
#pragma unroll
      for (int x = 0; x < 4; ++x) acc[y][x] += ds[y][x];
  }
  set_weights<false>(m, acc);
  __syncthreads();
  i64 first_row = query_tile * kTile, first_key = key_tile * kTile;
  int rows = size[2] == 1 ? 1 : i32(min(i64(kTile), size[2] - first_row));
  int keys = size[3] == 1 ? 1 : i32(min(i64(kTile), size[3] - first_key));
  for (int i = threadIdx.x; i < rows * keys; i += kTileThreads) {
    int row = i / keys, key = i % keys;
    L sum = L(0);
    for (int y = row; y <= (size[2] == 1 ? kTile - 1 : row); ++y)
      for (int x = key; x <= (size[3] == 1 ? kTile - 1 : key); ++x) sum += m.weights[y * kLd + x];
    i64 at = ((batch * size[1] + h) * size[2] + first_row + row) * size[3] + first_key + key;
    static_cast<L*>(a.bias_parts)[split * size[0] * size[1] * size[2] * size[3] + at] = sum;
  }
}

}  // namespace tsr::dev::attention
