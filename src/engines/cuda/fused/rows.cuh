// SPDX-License-Identifier: Apache-2.0
// Regions with reductions whose rows fit on chip: THREADS threads share a row, each keeps up to KEEP vectors of it in
// registers, so that memory is read once and written once whatever the number of stages.
#pragma once

#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <class C, int KEEP>
struct RowState {
  typename C::Loaded x[KEEP];
  typename C::Kept kept[KEEP];
  typename C::Rows r;
  int present = 0;  // vectors that this thread has
};

template <class C, int S, int THREADS, int KEEP, class Index, class Args>
void row_stage(const Args& a, const Index* base, int thread, RowState<C, KEEP>& row, typename C::Partial* scratch) {
  typename C::Partial p;
  C::template start<S>(p);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (j >= row.present) continue;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * THREADS), at);
    C::template accumulate<S>(a, at, row.x[j], row.kept[j], row.r, p);
  }
  total<C, S, THREADS>(p, scratch);
  C::template rows<S>(a, base, p, row.r);
  if constexpr (S + 1 < C::kStages) row_stage<C, S + 1, THREADS, KEEP>(a, base, thread, row, scratch);
}

template <template <int> class Code, int V, int THREADS, int KEEP, class Index, class Args>
void rows(const Args& a) {
  using C = Code<V>;
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  int thread = threadIdx.x % THREADS;
  i64 index = i64(blockIdx.x) * (blockDim.x / THREADS) + threadIdx.x / THREADS;
  // Threads beyond the last row still take part in barriers, with nothing to do.
  bool real = index < a.head.rows;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(real ? index : 0), base);
  RowState<C, KEEP> row;
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (!real || thread + j * THREADS >= a.head.length) continue;
    row.present = j + 1;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * THREADS), at);
    C::load(a, at, row.x[j]);
  }
  C::before(a, base, row.r);
  row_stage<C, 0, THREADS, KEEP>(a, base, thread, row, scratch);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (j >= row.present) continue;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * THREADS), at);
    typename C::Late late;
    C::load_late(a, at, late);
    C::store(a, at, row.x[j], late, row.kept[j], row.r);
  }
  if (real && thread == 0) C::store_rows(a, base, row.r);
}

}  // namespace tsr::dev
