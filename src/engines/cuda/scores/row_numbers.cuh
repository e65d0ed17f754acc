// SPDX-License-Identifier: Apache-2.0
// What gradients need of each row before their walk over tiles, and the gradient of sinks, which follows from it.
#pragma once

#include "engines/cuda/scores/gradient_args.cuh"
#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

// One number of a row; 0 where the sequence has none.
inline float row_number(const Sequences& x, i32 b, i32 head, i32 query) {
  Place at = place(x, b);
  return query < at.steps ? load_any<float>(x.data, x.type, row_offset(x, at, head, query)) : 0.0f;
}

// The sum of do o of a row by LANES neighbouring lanes. QUICK: eight elements of either are read at once.
template <int LANES, class TO, class TD, bool QUICK, class Args>
float sum_products(const Args& a, i32 b, i32 head, i32 query, bool there) {
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

// Statistics of a row that its sequence has, as exponents of 2.
template <class Args>
float row_exponent(const Args& a, i32 b, i32 head, i32 query) {
  float stats = row_number(a.stats, b, head, query) * (a.stats_log2 ? 1.0f : kLog2e);
  return stats == -infinity() ? infinity() : stats;
}

// Statistics as exponents of 2, and sums of do o (times what dropout multiplies by where the caller gave them without).
// One block for each tile of ROWS queries.
template <int ROWS, int LANES, class TO, class TD, bool QUICK, class Args>
void prepare_rows(const Args& a) {
  i64 tile = blockIdx.x;
  i32 head_of_all = i32(tile / a.query_tiles), b = head_of_all / a.hq, head = head_of_all - b * a.hq;
  i32 first = i32(tile - i64(head_of_all) * a.query_tiles) * ROWS, length = length_q(a, b);
#pragma unroll 1
  for (int row = threadIdx.x / LANES; row < ROWS; row += kAroundThreads / LANES) {
    i32 query = first + row;
    bool there = query < length;
    float sum = 0.0f;
    if (!a.delta.data) sum = sum_products<LANES, TO, TD, QUICK>(a, b, head, query, there);
    if (threadIdx.x % LANES != 0) continue;
    if (there && a.delta.data) sum = row_number(a.delta, b, head, query) * read<float>(a.keep_factor);
    a.row_stats[tile * ROWS + row] = there ? row_exponent(a, b, head, query) : infinity();
    a.row_delta[tile * ROWS + row] = sum;
  }
}

// Numbers of a row by one thread, where there is no room for those of all: a sequence is longer than the sizes say.
struct RowNumbers {
  float stats, delta;
};
template <class Args>
RowNumbers find_numbers(const Args& a, i32 b, i32 head, i32 query, i32 length) {
  if (query >= length) return {infinity(), 0.0f};
  RowNumbers y = {row_exponent(a, b, head, query), 0.0f};
  if (a.delta.data) {
    y.delta = row_number(a.delta, b, head, query) * read<float>(a.keep_factor);
  } else {
    i64 o = row_offset(a.o, place(a.o, b), head, query), d = row_offset(a.grad_o, place(a.grad_o, b), head, query);
    for (i32 c = 0; c < a.dv; ++c)
      y.delta += load_any<float>(a.o.data, a.o.type, o + c * a.o.strides[3]) *
                 load_any<float>(a.grad_o.data, a.grad_o.type, d + c * a.grad_o.strides[3]);
  }
  return y;
}

// The sink has probability exp(sink - stats) and no value. One block for each head.
template <int ROWS, class Args>
void sink_gradient(const Args& a) {
  i32 head = blockIdx.x, rows = a.query_tiles * ROWS;
  float sink = read<float>(a.sink, head) * kLog2e, sum = 0.0f;
  for (i32 b = 0; b < a.b; ++b) {
    i64 first = (i64(b) * a.hq + head) * rows;
    for (i32 i = threadIdx.x; i < rows; i += kAroundThreads)
      sum -= exp2f(sink - a.row_stats[first + i]) * a.row_delta[first + i];
  }
  sum = group_reduce<Add, kAroundThreads>(sum, reinterpret_cast<float*>(shared_memory()));
  if (threadIdx.x == 0) store_any(a.dsink.data, a.dsink.type, head * a.dsink.strides[1], sum);
}

}  // namespace tsr::dev::attention
