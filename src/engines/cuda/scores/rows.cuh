// SPDX-License-Identifier: Apache-2.0
// Where rows of sequences lie in memory, and which keys each query of a tile attends to. `O` says which options a
// kernel is for (options_text.hpp).
#pragma once

#include "device/any.cuh"
#include "device/block.cuh"
#include "device/memory.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

template <class L>
L read(const Numbers& n, i64 i = 0) {
  // Not by a call: in a kernel whose warpgroups hand registers on, its arguments arrived broken on an H200.
  return n.data ? load_any_here<L>(n.data, n.type, i * n.stride) : L(n.value);
}
// Of a tensor of i32 or i64.
inline i64 load_integer(const void* data, ElementType type, i64 at) {
  return type == ElementType::i64 ? static_cast<const i64*>(data)[at] : static_cast<const i32*>(data)[at];
}
inline i64 read_integer(const Numbers& n, i64 i = 0) {
  return n.data ? load_integer(n.data, n.type, i * n.stride) : n.integer;
}
inline i64 spread_offset(const Spread& x, i32 b, i32 h, i32 query, i32 key) {
  return b * x.strides[0] + h * x.strides[1] + query * x.strides[2] + key * x.strides[3];
}
template <class T, class L>
L read(const Spread& x, i32 b, i32 h, i32 query, i32 key) {
  return x.data ? to_lane<L>(static_cast<const T*>(x.data)[spread_offset(x, b, h, query, key)]) : L(x.value);
}

inline Place place(const Sequences& x, i32 b) {
  Place y = {b * x.strides[0], i32(x.steps), b, false};
  if (!x.offsets) return y;
  y.start = load_integer(x.offsets, x.offsets_type, b) * x.multiplier;
  i64 room = load_integer(x.offsets, x.offsets_type, b + 1) * x.multiplier - y.start;
  room = x.strides[2] > 1 ? room / x.strides[2] : room;
  y.steps = i32(room < 0 ? 0 : room < 0x7fffffff ? room : 0x7fffffff);
  return y;
}

inline i64 row_offset(const Sequences& x, const Place& at, i32 h, i32 step) {
  return at.start + h * x.strides[1] + step * x.strides[2];
}

// A row that is to be read; offset -1 where there is none.
struct Spot {
  i64 offset;
  i32 head, step;
};

// The block of the container that holds a step of a paged sequence, whose table lies at a place; -1: none.
inline i64 block_of(const Operand& x, const Place& table, i32 step) {
  i32 page = step / i32(x.steps);
  if (page >= table.steps) return -1;
  i64 block = load_integer(x.pages.data, x.pages.type, table.start + page * x.pages.strides[2]);
  return block < 0 || block >= x.blocks ? -1 : block;
}

template <class O>
Spot locate(const Operand& x, const Place& at, i32 h, i32 step) {
  if (step >= at.steps) return {-1, h, step};
  if (!O::kPaged || !x.pages.data) return {row_offset(x, at, h, step), h, step};
  i64 block = block_of(x, place(x.pages, at.b), step);
  if (block < 0) return {-1, h, step};
  return {block * x.strides[0] + h * x.strides[1] + step % i32(x.steps) * x.strides[2], h, step};
}

// --- queries
inline i32 length_of(const Numbers& n, bool given, bool prefix, i32 b, i32 full) {
  if (!given) return full;
  i64 y = prefix ? read_integer(n, b + 1) - read_integer(n, b) : read_integer(n, b);
  return i32(y < 0 ? 0 : y > full ? full : y);
}
inline i32 length_q(const ScoreArgs& a, i32 b) {
  i32 full = a.open_q ? max(a.sq, place(a.q, b).steps) : a.sq;
  return length_of(a.lengths_q, a.padded_q, a.prefix_q, b, full);
}
inline i32 length_kv(const ScoreArgs& a, i32 b) {
  i32 full = a.open_kv ? max(a.skv, place(a.k, b).steps) : a.skv;
  return length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, b, full);
}

// Queries of each head that rows are made of: those that the sizes count, those of longer sequences, or both.
struct Span {
  i32 first, count;
};
inline Span counted(const ScoreArgs& a) { return {0, a.sq}; }
inline Span beyond(const ScoreArgs& a, i32 b) { return {a.sq, a.open_q ? max(0, length_q(a, b) - a.sq) : 0}; }
inline Span all_queries(const ScoreArgs& a, i32 b) { return {0, a.sq + beyond(a, b).count}; }
inline i32 clamp(i64 v, i64 low, i64 high) { return i32(v < low ? low : v > high ? high : v); }

// The keys [first, last) that a query below its length attends to, before masks that depend on data.
struct Band {
  i32 first, last;
};
inline Band band_of(const ScoreArgs& a, i32 query, i32 len_q, i32 len_kv) {
  i64 diagonal = query + (a.bottom_right ? i64(len_kv) - len_q : 0);
  i32 last = clamp(diagonal + a.right + 1, 0, len_kv);
  return {clamp(diagonal - a.left + 1, 0, last), last};
}
// The slope of a head's linear bias.
template <class L>
L slope_of(const ScoreArgs& a, i32 head) {
  return a.slopes_given ? read<L>(a.slopes, head) : f_exp(L(-8) * L(head + 1) / L(a.hq) * L(0.69314718055994530942));
}

// Row `index` among the queries of `heads` neighbouring heads from `head` on.
template <class O, class L>
Row<L> make_row(const ScoreArgs& a, i32 b, i32 head, i32 heads, const Span& queries, i64 index) {
  Row<L> r = {-1, 0, -1, -1, L(0), L(0), L(0)};
  if (index >= i64(heads) * queries.count) return r;
  r.head = head + i32(index / queries.count);
  r.query = queries.first + i32(index % queries.count);
  i32 len_q = length_q(a, b), len_kv = length_kv(a, b);
  if (r.query >= len_q) return r;
  Band keys = band_of(a, r.query, len_q, len_kv);
  r.first = keys.first, r.last = keys.last;
  if (O::kAlibi) r.slope = slope_of<L>(a, r.head);
  return r;
}

// The keys that any of `count` rows attends to, the same for all threads; count is at most 64.
struct Range {
  i32 lo, hi;
};
template <class L>
Range range_of(const Row<L>* rows, int count) {
  Range y = {0x7fffffff, 0};
  for (int i = threadIdx.x % 32; i < count; i += 32)
    if (rows[i].first < rows[i].last) y = {min(y.lo, rows[i].first), max(y.hi, rows[i].last)};
  y = {warp_reduce<Min>(y.lo), warp_reduce<Max>(y.hi)};
  return y;
}

// --- results
// Where a row of a result begins; -1: it has none. Without the divisions of place(), where registers are scarce.
inline i64 result_offset(const Sequences& x, i32 b, i32 head, i32 query, i32 length) {
  i64 row = head * x.strides[1] + query * x.strides[2];
  if (!x.offsets) return query < x.steps ? b * x.strides[0] + row : -1;
  i64 start = load_integer(x.offsets, x.offsets_type, b) * x.multiplier;
  i64 room = load_integer(x.offsets, x.offsets_type, b + 1) * x.multiplier - start;
  return query < length && (query + 1) * x.strides[2] <= room ? start + row : -1;
}
// Does a result hold this step? A ragged one ends with its sequence.
inline bool holds(const Sequences& x, const Place& at, i32 step, i32 length) {
  return step < at.steps && (!x.offsets || step < length);
}

}  // namespace tsr::dev::attention
