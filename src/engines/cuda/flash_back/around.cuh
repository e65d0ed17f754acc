// SPDX-License-Identifier: Apache-2.0
// What stands before and behind the walk over tiles: sums that begin as 0, and results from sums.
#pragma once

#include "engines/cuda/flash_back/args.cuh"
#include "engines/cuda/scores/results.cuh"
#include "engines/cuda/scores/row_numbers.cuh"

namespace tsr::dev::attention {

// Before the gradients: numbers of rows, and sums of dq, which begin as 0. One block for each tile of ROWS queries.
template <int ROWS, int DEPTH, class TO, class TD, bool QUICK>
void prepare(const BackArgs& a) {
  i64 tile = blockIdx.x;
  float* sums = a.dq_sums + tile * ROWS * DEPTH;
  for (int i = threadIdx.x; i < ROWS * DEPTH / 4; i += kAroundThreads) store_vector(sums + i * 4, Vec<float, 4>{});
  if (a.turns && threadIdx.x < 2) a.turns[tile * 2 + threadIdx.x] = 0;
  prepare_rows<ROWS, DEPTH / 8 < 32 ? DEPTH / 8 : 32, TO, TD, QUICK>(a);
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
  i32 head_of_all = i32(tile / a.query_tiles), b = head_of_all / a.hq, head = head_of_all - b * a.hq;
  i32 first = i32(tile - i64(head_of_all) * a.query_tiles) * ROWS;
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
