// SPDX-License-Identifier: Apache-2.0
// What gradients know of a query, and the rows of tiles.
#pragma once

#include "engines/cuda/attention/args.cuh"
#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

inline i32 tiles_of(const AttentionArgs& a, const Span& s, int tile) {
  return i32((i64(a.group) * s.count + tile - 1) / tile);
}

// One number of a row; 0 where the sequence has none.
template <class L>
L row_number(const Sequences& x, i32 b, i32 head, i32 query) {
  Place at = place(x, b);
  return query < at.steps ? load_any<L>(x.data, x.type, row_offset(x, at, head, query)) : L(0);
}
// Statistics as natural logarithms.
template <class L>
L natural_stats(const AttentionArgs& a, i32 b, i32 head, i32 query) {
  return row_number<L>(a.stats, b, head, query) * (a.stats_log2 ? L(0.69314718055994530942) : L(1));
}
// Of a query beyond the sizes, for which prepare() has no room: the sum of do o, by one thread.
template <class L>
L late_delta(const AttentionArgs& a, i32 b, i32 head, i32 query) {
  if (a.delta.data && (a.delta.offsets || query < a.delta.steps))
    return row_number<L>(a.delta, b, head, query) * read<L>(a.keep_factor);
  Place at_o = place(a.o, b), at_do = place(a.grad_o, b);
  if (query >= at_o.steps || query >= at_do.steps) return L(0);
  i64 o = row_offset(a.o, at_o, head, query), d = row_offset(a.grad_o, at_do, head, query);
  L sum = L(0);
  for (i32 c = 0; c < a.dv; ++c)
    sum += load_any<L>(a.o.data, a.o.type, o + c * a.o.strides[3]) *
           load_any<L>(a.grad_o.data, a.grad_o.type, d + c * a.grad_o.strides[3]);
  return sum * read<L>(a.descale_o) * read<L>(a.descale_do);
}
// What gradients know of a row.
template <class L>
struct RowNumbers {
  L stats, delta;
};
template <class L>
RowNumbers<L> row_numbers(const AttentionArgs& a, i32 b, i32 head, i32 query) {
  if (query >= a.sq) return {natural_stats<L>(a, b, head, query), late_delta<L>(a, b, head, query)};
  i64 at = (i64(b) * a.hq + head) * a.sq + query;
  return {static_cast<const L*>(a.row_stats)[at], static_cast<const L*>(a.row_delta)[at]};
}

// A row of scores, and in backward what is known of it.
template <class O, class L>
Row<L> make_known_row(const AttentionArgs& a, i32 b, i32 head, i32 heads, const Span& queries, i64 index) {
  Row<L> r = make_row<O, L>(a, b, head, heads, queries, index);
  if (!a.row_stats || r.last < 0) return r;
  RowNumbers<L> known = row_numbers<L>(a, b, r.head, r.query);
  r.stats = known.stats, r.delta = known.delta;
  if (r.stats == -L(infinity())) r.first = r.last = 0;  // attended to nothing
  return r;
}

}  // namespace tsr::dev::attention
