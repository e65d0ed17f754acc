// SPDX-License-Identifier: Apache-2.0
// Attention forward: a block takes 64 queries and walks along their keys, 64 at a time, with the running maximum and
// sum of the softmax and up to SLICES * 64 columns of the result in registers. Where there are few queries the keys are
// split among blocks, and around.cuh joins what they found.
#pragma once

#include "engines/cuda/attention/tile.cuh"

namespace tsr::dev::attention {

// What a block does.
struct ForwardTask {
  i32 b, head, k_head, v_head;  // the first head of the group
  i64 row;                      // the first of the group's rows
  i32 split, part;
};

// The last queries come first: under a causal mask they have the most to do.
inline ForwardTask forward_task(const AttentionArgs& a) {
  i32 index = blockIdx.x, groups = a.hq / a.group;
  ForwardTask t;
  t.part = index % a.parts, index /= a.parts;
  t.split = index % a.splits, index /= a.splits;
  t.row = i64(a.row_tiles - 1 - index % a.row_tiles) * kTile, index /= a.row_tiles;
  t.head = index % groups * a.group;
  t.b = index / groups;
  t.k_head = t.head / (a.hq / a.hk);
  t.v_head = t.head / (a.hq / a.hv);
  return t;
}

// The keys of one split; tiles start at multiples of `step`.
inline Range split_range(const AttentionArgs& a, Range all, i32 split, i32 step) {
  all.lo = all.lo / step * step;
  if (all.lo >= all.hi) return {0, 0};
  i32 tiles = (all.hi - all.lo + step - 1) / step, each = (tiles + a.splits - 1) / a.splits;
  i64 lo = all.lo + i64(split) * each * step, hi = lo + i64(each) * step;
  return {i32(lo < all.hi ? lo : all.hi), i32(hi < all.hi ? hi : all.hi)};
}

// Where a split keeps what it found about a row.
inline i64 part_index(const AttentionArgs& a, i32 b, i32 head, i32 split, i64 row) {
  i64 rows = i64(a.group) * a.sq;
  return ((i64(b) * (a.hq / a.group) + head / a.group) * a.splits + split) * rows + row;
}

template <int SLICES, class L>
void write_parts(const AttentionArgs& a, const ForwardTask& t, const TileMemory<L>& m, const Softmax<L> (&soft)[4],
                 const L (&acc)[SLICES][4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int row = tile_y() + i;
    if (m.rows[row].head < 0) continue;
    i64 at = part_index(a, t.b, t.head, t.split, t.row + row);
    if (tile_x() == 0 && t.part == 0) {
      static_cast<L*>(a.part_max)[at] = soft[i].max;
      static_cast<L*>(a.part_sum)[at] = soft[i].sum;
    }
#pragma unroll
    for (int s = 0; s < SLICES; ++s)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i32 column = (t.part * SLICES + s) * kTile + tile_x() + j;
        if (column < a.dv) static_cast<L*>(a.part_o)[at * a.dv + column] = acc[s][i][j];
      }
  }
}

// Returns the largest magnitude of what it stored, before scale_o, and `largest`.
template <bool TWO, class TO, int SLICES, class L>
L write_results(const AttentionArgs& a, const ForwardTask& t, const TileMemory<L>& m, const Softmax<L> (&soft)[4],
                const L (&acc)[SLICES][4][4], L largest) {
  L scale = result_scale<L>(a), keep = read<L>(a.keep_factor), stored = read<L>(a.scale_o);
  i32 length = length_q(a, t.b);
  Place at = place(a.o, t.b);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const Row<L>& r = m.rows[tile_y() + i];
    if (r.head < 0) continue;
    if (tile_x() == 0 && t.part == 0) write_statistics(a, t.b, r.head, r.query, length, soft[i]);
    L factor = TWO ? scale : soft[i].sum == L(0) ? L(0) : scale * keep / soft[i].sum;
    bool there = a.o.data && holds(a.o, at, r.query, length);
    i64 offset = row_offset(a.o, at, r.head, r.query);
#pragma unroll
    for (int s = 0; s < SLICES; ++s)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i32 column = (t.part * SLICES + s) * kTile + tile_x() + j;
        if (column >= a.dv) continue;
        L y = acc[s][i][j] * factor;
        largest = Max::join(largest, f_abs(y));
        if (there) static_cast<TO*>(a.o.data)[offset + column * a.o.strides[3]] = from_lane<TO>(y * stored);
      }
  }
  return largest;
}

// Largest magnitudes of probabilities and results.
template <class L>
struct Largest {
  L p, o;
};

// TWO passes where probabilities are rounded or measured: these must be final. The first finds maximum and sum.
template <class TQ, class TK, class TV, class TO, int SLICES, bool TWO, class O, class L>
void forward_tile(const AttentionArgs& a, TileMemory<L>& m, const ForwardTask& t, const Span& span, Largest<L>& most) {
  const Factors<L>& f = m.factors;
  fill_rows<O>(a, m, t.b, t.head, a.group, span, t.row);
  Range keys = split_range(a, range_of(m.rows, kTile), t.split, kTile);
  auto queries = query_rows<O>(m, a.q, f.q);
  Softmax<L> soft[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) soft[i] = start_softmax(a, m.rows[tile_y() + i], t.split == 0);
  L acc[SLICES][4][4] = {};
  i32 loads = 0;
  for (int pass = 0; pass < (TWO ? 2 : 1); ++pass)
    for (i32 first = keys.lo; first < keys.hi; first += kTile) {
      if (all_hidden<O>(a, m, t.b, first)) continue;
      auto rows_k = key_rows<O>(a.k, f.k, t.k_head, first, keys.hi);
      auto rows_v = key_rows<O>(a.v, f.v, t.v_head, first, keys.hi);
      L s[4][4];
      product(
          m, a.d, [&](i32 c, L* to) { load_rows<O, true, kDepth, TQ>(a.q, f.q, a.d, c, to, queries); },
          [&](i32 c, L* to) { load_rows<O, true, kDepth, TK>(a.k, f.k, a.d, c, to, rows_k); }, s);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Row<L>& r = m.rows[tile_y() + i];
        i32 key = first + tile_x();
#pragma unroll
        for (int j = 0; j < 4; ++j) s[i][j] = finish_score<O>(a, t.b, r, key + j, s[i][j] * f.score);
        if (TWO && pass == 1) {
          L share = soft[i].sum == L(0) ? L(0) : L(1) / soft[i].sum;
#pragma unroll
          for (int j = 0; j < 4; ++j) s[i][j] = s[i][j] == -L(infinity()) ? L(0) : f_exp(s[i][j] - soft[i].max) * share;
        } else {
          L factor = update_softmax<16, 4>(soft[i], s[i]);
#pragma unroll
          for (int c = 0; c < SLICES; ++c)
#pragma unroll
            for (int j = 0; j < 4; ++j) acc[c][i][j] *= factor;
        }
        if (O::kDrops && r.head >= 0) {
          L keep[4];
          keep_four<O>(a, f, t.b, r.head, r.query, key, keep);
#pragma unroll
          for (int j = 0; j < 4; ++j) s[i][j] *= TWO ? keep[j] * f.keep : keep[j];
        }
        if (TWO && pass == 1) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            most.p = Max::join(most.p, f_abs(s[i][j]));
            if constexpr (sizeof(TV) == 1)
              if (a.rounds_p) s[i][j] = round_as<TV>(s[i][j] * f.scale_s);
          }
        }
      }
      if (TWO && pass == 0) continue;
      set_weights<true>(m, s);
      accumulate<SLICES>(
          m, min(kTile, keys.hi - first), a.dv, t.part * SLICES * kTile,
          [&](i32 c, L* to) { return load_rows<O, false, kTile, TV>(a.v, f.v, a.dv, c, to, rows_v); }, loads, acc);
    }
  if (a.splits > 1)
    write_parts(a, t, m, soft, acc);
  else
    most.o = write_results<TWO, TO>(a, t, m, soft, acc, most.o);
}

template <class L, class TQ, class TK, class TV, class TO, int SLICES, bool TWO, class O>
void forward(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  ForwardTask t = forward_task(a);
  Largest<L> most = {L(0), L(0)};
  start_tiles<O, TQ, TK, TV, TV>(a, m, t.b);
  forward_tile<TQ, TK, TV, TO, SLICES, TWO, O>(a, m, t, counted(a), most);
  if constexpr (TWO) write_amax(a, m, 0, most.p);
  if (a.splits == 1) write_amax(a, m, 1, most.o);
}

// Queries of packed sequences that are longer than the sizes say: a block takes one tile after the other, since nobody
// knew how many there are.
template <class L, class TQ, class TK, class TV, class TO, int SLICES, bool TWO, class O>
void forward_beyond(const AttentionArgs& a) {
  TileMemory<L>& m = tile_memory<L>();
  ForwardTask t = forward_task(a);
  Largest<L> most = {L(0), L(0)};
  start_tiles<O, TQ, TK, TV, TV>(a, m, t.b);
  Span late = beyond(a, t.b);
  for (; t.row < i64(a.group) * late.count; t.row += i64(a.row_tiles) * kTile)
    forward_tile<TQ, TK, TV, TO, SLICES, TWO, O>(a, m, t, late, most);
  if constexpr (TWO) write_amax(a, m, 0, most.p);
  write_amax(a, m, 1, most.o);
}

}  // namespace tsr::dev::attention
