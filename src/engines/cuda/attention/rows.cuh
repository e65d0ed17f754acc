// SPDX-License-Identifier: Apache-2.0
// Where rows of sequences lie in memory, and which keys each query of a tile attends to. `O` says which options a
// kernel is for (options_text.hpp).
#pragma once

#include "device/any.cuh"
#include "device/block.cuh"
#include "device/memory.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/attention/args.cuh"

namespace tsr::dev::attention {

template <class L>
L read(const Numbers& n, i64 i = 0) {
  return n.data ? load_any<L>(n.data, n.type, i * n.stride) : L(n.value);
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

// Elements that are read at once.
template <class T>
constexpr int kVector = sizeof(T) == 8   ? 2
                        : sizeof(T) == 4 ? 4
                                         : 8;

template <class O, class T>
Place place_operand(const Operand& x, i32 b) {
  constexpr int V = kVector<T>;
  Place y = place(x, b);
  bool even = x.strides[1] % V == 0 && x.strides[2] % V == 0 && x.strides[3] == 1;
  if (O::kPaged && x.pages.data) {
    y.start = 0;
    y.steps = 0x7fffffff;
    even = even && x.strides[0] % V == 0;
  }
  y.quick = even && y.start % V == 0 && reinterpret_cast<u64>(x.data) % (sizeof(T) * V) == 0 && !x.scales;
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

template <class O>
Spot locate(const Operand& x, const Place& at, i32 h, i32 step) {
  if (step >= at.steps) return {-1, h, step};
  if (!O::kPaged || !x.pages.data) return {row_offset(x, at, h, step), h, step};
  Place table = place(x.pages, at.b);
  i32 size = i32(x.steps), page = step / size;
  i64 block = -1;
  if (page < table.steps) block = load_integer(x.pages.data, x.pages.type, table.start + page * x.pages.strides[2]);
  if (block < 0 || block >= x.blocks) return {-1, h, step};
  return {block * x.strides[0] + h * x.strides[1] + step % size * x.strides[2], h, step};
}

// The factor of a block-scaled element. Tiles of 128 by 4: see graph/ops/block_scale.hpp.
inline float block_scale(const Operand& x, const Place& at, const Spot& s, i32 column) {
  i64 i = s.step / x.scale_steps, j = column / x.scale_columns;
  i64 offset = at.b * x.scale_strides[0] + s.head * x.scale_strides[1];
  if (x.scale_tiles == 0) {
    offset += i * x.scale_strides[2] + j * x.scale_strides[3];
  } else {
    bool along = x.scale_columns > 1;  // blocks run along d
    i64 row = along ? i : j, block = along ? j : i;
    offset += (row / 128 * x.scale_tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
  }
  return to_lane<float>(static_cast<const e8m0*>(x.scales)[offset]);
}

// V elements from `column` on as they lie in memory; 0 where there are none. QUICK: at.quick and no end of the row.
template <bool QUICK, class T, int V>
void fetch(const Operand& x, const Spot& s, i32 width, i32 column, Vec<T, V>& y) {
  const T* data = static_cast<const T*>(x.data) + s.offset;
  if constexpr (QUICK) {
    y = {};
    if (s.offset >= 0) load_vector(data + column, y);
  } else {
#pragma unroll
    for (int j = 0; j < V; ++j) y.v[j] = s.offset >= 0 && column + j < width ? data[(column + j) * x.strides[3]] : T{};
  }
}
template <class O, class L, class T>
L widened(const Operand& x, const Place& at, const Spot& s, i32 column, T v) {
  L y = to_lane<L>(v);
  if constexpr (O::kScaled)
    if (x.scales && s.offset >= 0) y *= L(block_scale(x, at, s, column));
  return y;
}

template <class L>
bool is_finite(L v) {
  return v - v == L(0);
}

// --- queries
inline i32 length_of(const Numbers& n, bool given, bool prefix, i32 b, i32 full) {
  if (!given) return full;
  i64 y = prefix ? read_integer(n, b + 1) - read_integer(n, b) : read_integer(n, b);
  return i32(y < 0 ? 0 : y > full ? full : y);
}
inline i32 length_q(const AttentionArgs& a, i32 b) {
  i32 full = a.open_q ? max(a.sq, place(a.q, b).steps) : a.sq;
  return length_of(a.lengths_q, a.padded_q, a.prefix_q, b, full);
}
inline i32 length_kv(const AttentionArgs& a, i32 b) {
  i32 full = a.open_kv ? max(a.skv, place(a.k, b).steps) : a.skv;
  return length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, b, full);
}

// Queries of each head that rows are made of: those that the sizes count, those of longer sequences, or both.
struct Span {
  i32 first, count;
};
inline Span counted(const AttentionArgs& a) { return {0, a.sq}; }
inline Span beyond(const AttentionArgs& a, i32 b) { return {a.sq, a.open_q ? max(0, length_q(a, b) - a.sq) : 0}; }
inline Span all_queries(const AttentionArgs& a, i32 b) { return {0, a.sq + beyond(a, b).count}; }
inline i32 tiles_of(const AttentionArgs& a, const Span& s, int tile) {
  return i32((i64(a.group) * s.count + tile - 1) / tile);
}

inline i32 clamp(i64 v, i64 low, i64 high) { return i32(v < low ? low : v > high ? high : v); }

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

// Row `index` among the queries of `heads` neighbouring heads from `head` on.
template <class O, class L>
Row<L> make_row(const AttentionArgs& a, i32 b, i32 head, i32 heads, const Span& queries, i64 index) {
  Row<L> r = {-1, 0, -1, -1, L(0), L(0), L(0)};
  if (index >= i64(heads) * queries.count) return r;
  r.head = head + i32(index / queries.count);
  r.query = queries.first + i32(index % queries.count);
  i32 len_q = length_q(a, b), len_kv = length_kv(a, b);
  if (r.query >= len_q) return r;
  i64 diagonal = r.query + (a.bottom_right ? i64(len_kv) - len_q : 0);
  r.last = clamp(diagonal + a.right + 1, 0, len_kv);
  r.first = clamp(diagonal - a.left + 1, 0, r.last);
  if (O::kAlibi)
    r.slope =
        a.slopes_given ? read<L>(a.slopes, r.head) : f_exp(L(-8) * L(r.head + 1) / L(a.hq) * L(0.69314718055994530942));
  if (a.row_stats) {
    RowNumbers<L> known = row_numbers<L>(a, b, r.head, r.query);
    r.stats = known.stats, r.delta = known.delta;
    if (r.stats == -L(infinity())) r.first = r.last = 0;  // attended to nothing
  }
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
// Does a result hold this step? A ragged one ends with its sequence.
inline bool holds(const Sequences& x, const Place& at, i32 step, i32 length) {
  return step < at.steps && (!x.offsets || step < length);
}

}  // namespace tsr::dev::attention
