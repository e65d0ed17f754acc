// SPDX-License-Identifier: Apache-2.0
// Regions with reductions of rows and, beside them, sums over all rows (the gradients of a norm's scale and bias). A
// fixed number of blocks walks over the rows, loading the next row while it works on one, and adds up its columns in
// registers; what the blocks have is left in memory and joined by a second kernel in a fixed order.
#pragma once

#include "engines/cuda/fused/rows.cuh"

namespace tsr::dev {

template <class C, int THREADS, int KEEP, class Index, class Args>
void load_row(const Args& a, i64 index, int thread, Index* base, RowState<C, KEEP>& row) {
  row.present = 0;
  if (index >= a.head.rows) return;
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) base[k] = 0;
  locate<C::kOperands, C::kOuter, true>(a, Index(index), base);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (thread + j * THREADS >= a.head.length) continue;
    row.present = j + 1;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * THREADS), at);
    C::load(a, at, row.x[j]);
  }
  C::before(a, base, row.r);
}

template <template <int> class Code, int V, int THREADS, int KEEP, class Index, class Args>
void across(const Args& a) {
  using C = Code<V>;
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  int thread = threadIdx.x % THREADS, group = threadIdx.x / THREADS, groups = blockDim.x / THREADS;
  typename C::Sums sums[KEEP];
#pragma unroll
  for (int j = 0; j < KEEP; ++j) C::clear(sums[j]);
  RowState<C, KEEP> row, next;
  Index base[C::kOperands + 1] = {}, next_base[C::kOperands + 1] = {};
  i64 step = i64(gridDim.x) * groups, first = i64(blockIdx.x) * groups;
  load_row<C, THREADS, KEEP>(a, first + group, thread, base, row);
  // All groups of a block go round equally often: they meet at barriers.
  for (; first < a.head.rows; first += step) {
    load_row<C, THREADS, KEEP>(a, first + step + group, thread, next_base, next);
    row_stage<C, 0, THREADS, KEEP, 1>(a, base, thread, row, scratch);
#pragma unroll
    for (int j = 0; j < KEEP; ++j) {
      if (j >= row.present) continue;
      Index at[C::kOperands + 1];
      along<C>(a, base, Index(thread + j * THREADS), at);
      typename C::Late late;
      C::load_late(a, at, late);
      C::store(a, at, row.x[j], late, row.kept[j], row.r, sums[j]);
    }
    if (row.present && thread == 0) C::store_rows(a, base, row.r);
    row = next;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) base[k] = next_base[k];
  }
  // The groups of a block, then the block's share of memory.
  auto* shared = reinterpret_cast<typename C::Sums*>(shared_memory());
  auto* all = static_cast<typename C::Sums*>(a.head.partials) + i64(blockIdx.x) * a.head.length;
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    __syncthreads();
    shared[threadIdx.x] = sums[j];
    __syncthreads();
    if (group == 0 && thread + j * THREADS < a.head.length) {
      for (int g = 1; g < groups; ++g) C::add(sums[j], shared[g * THREADS + thread]);
      all[thread + j * THREADS] = sums[j];
    }
  }
}

// Joins what `splits` blocks left: TX vectors of columns by TY threads along the blocks.
template <template <int> class Code, int V, int TX, int TY, class Index, class Args>
void join_across(const Args& a) {
  using C = Code<V>;
  i64 index = i64(blockIdx.x) * TX + threadIdx.x % TX;
  bool real = index < a.head.length;
  typename C::Sums s;
  C::clear(s);
  for (i64 b = threadIdx.x / TX; real && b < a.head.splits; b += TY)
    C::add(s, static_cast<const typename C::Sums*>(a.head.partials)[b * a.head.length + index]);
  auto* shared = reinterpret_cast<typename C::Sums*>(shared_memory());
  shared[threadIdx.x] = s;
#pragma unroll
  for (int half = TY / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half * TX) {
      C::add(s, shared[threadIdx.x + half * TX]);
      shared[threadIdx.x] = s;
    }
  }
  if (!real || threadIdx.x >= TX) return;
  Index base[C::kOperands + 1] = {}, at[C::kOperands + 1];
  along<C>(a, base, Index(index), at);
  C::store_sums(a, at, s);
}

}  // namespace tsr::dev
