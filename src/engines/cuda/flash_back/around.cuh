// SPDX-License-Identifier: Apache-2.0
// What stands before and behind the walk over tiles: numbers of rows, and dq from its sums.
#pragma once

#include "engines/cuda/flash_back/results.cuh"
#include "engines/cuda/scores/scores.cuh"

namespace tsr::dev::attention {

// One number of a row; 0 where the sequence has none.
inline float row_number(const Sequences& x, i32 b, i32 head, i32 query) {
  Place at = place(x, b);
  return query < at.steps ? load_any<float>(x.data, x.type, row_offset(x, at, head, query)) : 0.0f;
}

// The sum of do o of a row by LANES neighbouring lanes. QUICK: eight elements of either are read at once.
template <int LANES, class TO, class TD, bool QUICK>
float sum_products(const BackArgs& a, i32 b, i32 head, i32 query, bool there) {
  constexpr int kWidth = QUICK ? 8 : 1;
  Place at_o = place(a.o, b), at_do = place(a.grad_o, b);
  there = there && query < at_o.steps && query < at_do.steps;
  const TO* o = static_cast<const TO*>(a.o.data) + row_offset(a.o, at_o, head, query);
  const TD* d = static_cast<const TD*>(a.grad_o.data) + row_offset(a.grad_o, at_do, head, query);
  i64 o_step = QUICK ? 1 : a.o.strides[3], d_step = QUICK ? 1 : a.grad_o.strides[3];
  float sum = 0.0f;
  for (i32 c = threadIdx.x % LANES * kWidth; there && c < a.dv; c += LANES * kWidth) {
    Vec<TO, kWidth> x;
    Vec<TD, kWidth> y;
    load_vector(o + c * o_step, x);
    load_vector(d + c * d_step, y);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += to_lane<float>(x.v[i]) * to_lane<float>(y.v[i]);
  }
  return warp_reduce<Add, LANES>(sum);
}

// Before the gradients: statistics as exponents of 2, sums of do o (times what dropout multiplies by where the caller
// gave them without), and sums of dq, which begin as 0. One block for each tile of ROWS queries.
template <int ROWS, int DEPTH, class TO, class TD, bool QUICK>
void prepare(const BackArgs& a) {
  constexpr float kLog2e = 1.44269504088896340736f;
  constexpr int kLanes = DEPTH / 8 < 32 ? DEPTH / 8 : 32;
  i64 tile = blockIdx.x;
  i32 head_of_all = i32(tile / a.row_tiles), b = head_of_all / a.hq, head = head_of_all - b * a.hq;
  i32 first = i32(tile - i64(head_of_all) * a.row_tiles) * ROWS, length = length_q(a, b);
  float* sums = a.dq_sums + tile * ROWS * DEPTH;
  for (int i = threadIdx.x; i < ROWS * DEPTH / 4; i += kAroundThreads) store_vector(sums + i * 4, Vec<float, 4>{});
  if (a.turns && threadIdx.x < 2) a.turns[tile * 2 + threadIdx.x] = 0;
#pragma unroll 1
  for (int row = threadIdx.x / kLanes; row < ROWS; row += kAroundThreads / kLanes) {
    i32 query = first + row;
    bool there = query < length;
    float sum = 0.0f;
    if (!a.delta.data) sum = sum_products<kLanes, TO, TD, QUICK>(a, b, head, query, there);
    if (threadIdx.x % kLanes != 0) continue;
    if (there && a.delta.data) sum = row_number(a.delta, b, head, query) * read<float>(a.keep_factor);
    float stats = there ? row_number(a.stats, b, head, query) * (a.stats_log2 ? 1.0f : kLog2e) : -infinity();
    a.row_stats[tile * ROWS + row] = stats == -infinity() ? infinity() : stats;
    a.row_delta[tile * ROWS + row] = sum;
  }
}

// The sink has probability exp(sink - stats) and no value. One block for each head.
template <int ROWS>
void sink_gradient(const BackArgs& a) {
  constexpr float kLog2e = 1.44269504088896340736f;
  i32 head = blockIdx.x, rows = a.row_tiles * ROWS;
  float sink = read<float>(a.sink, head) * kLog2e, sum = 0.0f;
  for (i32 b = 0; b < a.b; ++b) {
    i64 first = (i64(b) * a.hq + head) * rows;
    for (i32 i = threadIdx.x; i < rows; i += kAroundThreads)
      sum -= exp2f(sink - a.row_stats[first + i]) * a.row_delta[first + i];
  }
  sum = group_reduce<Add, kAroundThreads>(sum, reinterpret_cast<float*>(shared_memory()));
  if (threadIdx.x == 0) store_any(a.dsink.data, a.dsink.type, head * a.dsink.strides[1], sum);
}

// What begins as 0, and is not there for every query.
inline void clear_sums(const BackArgs& a) {
  i64 all = i64(gridDim.x) * kAroundThreads;
  for (i64 i = i64(blockIdx.x) * kAroundThreads + threadIdx.x; i < a.bias_count; i += all) a.bias_sums[i] = 0.0f;
  if (a.largest && blockIdx.x == 0 && threadIdx.x == 0) *a.largest = 0;
}

// One thread for each element.
inline void finish_bias(const BackArgs& a) {
  i64 index = i64(blockIdx.x) * kAroundThreads + threadIdx.x, rest = index, at = 0;
  if (index >= a.bias_count) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (a.bias_strides[i] == 0) continue;
    i64 here = rest / a.bias_strides[i];
    rest -= here * a.bias_strides[i];
    at += here * a.dbias.strides[i];
  }
  store_any(a.dbias.data, a.dbias.type, at, a.bias_sums[index]);
}

inline void finish_largest(const BackArgs& a) {
  float scale = fabsf(float(a.scale_option) * read<float>(a.scale));
  if (threadIdx.x == 0) store_any(a.amax_dp.data, a.amax_dp.type, 0, __uint_as_float(*a.largest) * scale);
}

// Sums as two warpgroups left them, each of COLUMNS columns: [columns / 8][128 threads][4]. A thread takes 32 columns
// of two rows from there.
template <int COLUMNS, class Load, class Store>
void each_columns(const Load& load, const Store& store) {
  constexpr int kGroups = COLUMNS / 32;
  for (int i = threadIdx.x; i < 2 * kGroups * 128; i += kAroundThreads) {
    int thread = i % 128, group = i / 128 % kGroups, part = i / 128 / kGroups;
    Vec<float, 4> fours[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) fours[k] = load(part, ((group * 4 + k) * 128 + thread) * 4);
    store(part, thread / 32 * 16 + thread % 32 / 4, group * 32, fours);
  }
}

// One block for each tile of ROWS queries; DEPTH: of rows of sums. Each of two warpgroups had a part: rows below each
// other, or columns side by side.
template <int ROWS, int DEPTH, class TO>
void finish_queries(const BackArgs& a) {
  i64 tile = blockIdx.x;
  i32 head_of_all = i32(tile / a.row_tiles), b = head_of_all / a.hq, head = head_of_all - b * a.hq;
  i32 first = i32(tile - i64(head_of_all) * a.row_tiles) * ROWS;
  constexpr bool kRowParts = ROWS == 128;
  constexpr int kElements = ROWS * DEPTH / 2, kColumns = kRowParts ? DEPTH : DEPTH / 2;
  const float* sums = a.dq_sums + tile * ROWS * DEPTH;
  Result r =
      result_of(a.grad_q, b, head, a.sq, length_q(a, b), a.d, a.dq_whole, float(a.scale_option) * read<float>(a.scale));
  auto load = [&](int part, int at) {
    Vec<float, 4> x;
    load_vector(sums + part * kElements + at, x);
    return x;
  };
  each_columns<kColumns>(load, [&](int part, int row, int column, auto& fours) {
    if (kRowParts)
      row += part * 64;
    else
      column += part * kColumns;
    store_columns<TO>(r, first + row, column, fours);
  });
}

// Joins what the splits of 128 keys have of dk, or of dv. One block for each such tile.
template <int DEPTH, bool VALUES, class TO>
void finish_keys(const BackArgs& a) {
  constexpr int kElements = kBackKeys * DEPTH;
  i32 head_of_all = i32(blockIdx.x) / a.key_tiles, b = head_of_all / a.hk, head = head_of_all - b * a.hk;
  i32 first = (i32(blockIdx.x) - head_of_all * a.key_tiles) * kBackKeys;
  const float* parts = a.key_parts + (i64(blockIdx.x) * a.splits * 2 + VALUES) * kElements;
  Result r = result_of(VALUES ? a.grad_v : a.grad_k, b, head, a.skv, length_kv(a, b), VALUES ? a.dv : a.d,
                       VALUES ? a.dv_whole : a.dk_whole,
                       VALUES ? read<float>(a.keep_factor) : float(a.scale_option) * read<float>(a.scale));
  auto load = [&](int part, int at) {
    Vec<float, 4> sum = {}, x;
    for (i32 split = 0; split < a.splits; ++split) {
      load_vector(parts + i64(split) * 2 * kElements + part * (kElements / 2) + at, x);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum.v[k] += x.v[k];
    }
    return sum;
  };
  each_columns<DEPTH>(load, [&](int part, int row, int column, auto& fours) {
    store_columns<TO>(r, first + part * 64 + row, column, fours);
  });
}

}  // namespace tsr::dev::attention
