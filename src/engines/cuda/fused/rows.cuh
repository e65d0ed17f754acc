// SPDX-License-Identifier: Apache-2.0
// Regions with reductions whose rows fit on chip: THREADS threads share a row, each keeps up to KEEP vectors of it in
// registers, so that memory is read once and written once whatever the number of stages.
#pragma once

#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <class C, int S, int KEEP, class Index>
void row_stage(const FusedArgs& a, const Index (&at)[KEEP][C::kOperands + 1], const typename C::Loaded (&x)[KEEP],
               typename C::Kept (&kept)[KEEP], int present, const Index* base, typename C::Rows& r,
               typename C::Partial* scratch, auto threads) {
  typename C::Partial p;
  C::template start<S>(p);
#pragma unroll
  for (int j = 0; j < KEEP; ++j)
    if (j < present) C::template accumulate<S>(a, at[j], x[j], kept[j], r, p);
  total<C, S, decltype(threads)::value>(p, scratch);
  C::template rows<S>(a, base, p, r);
  if constexpr (S + 1 < C::kStages) row_stage<C, S + 1, KEEP>(a, at, x, kept, present, base, r, scratch, threads);
}

template <int N>
struct Count {
  static constexpr int value = N;
};

template <template <int> class Code, int V, int THREADS, int KEEP, class Index>
void rows(const FusedArgs& a) {
  using C = Code<V>;
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  int thread = threadIdx.x % THREADS;
  i64 row = i64(blockIdx.x) * (blockDim.x / THREADS) + threadIdx.x / THREADS;
  // Threads beyond the last row still take part in barriers, with nothing to do.
  bool real = row < a.rows;
  Index base[C::kOperands + 1] = {}, at[KEEP][C::kOperands + 1];
  locate<C::kOperands, C::kOuter, true>(a, Index(real ? row : 0), base);
  int present = 0;
  typename C::Loaded x[KEEP];
  typename C::Kept kept[KEEP];
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    int index = thread + j * THREADS;
    if (!real || index >= a.length) continue;
    present = j + 1;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) at[j][k] = base[k];
    locate<C::kOperands, C::kInner, false>(a, Index(index), at[j]);
    C::load(a, at[j], x[j]);
  }
  typename C::Rows r;
  C::before(a, base, r);
  row_stage<C, 0, KEEP>(a, at, x, kept, present, base, r, scratch, Count<THREADS>());
#pragma unroll
  for (int j = 0; j < KEEP; ++j)
    if (j < present) C::store(a, at[j], x[j], kept[j], r);
  if (real && thread == 0) C::store_rows(a, base, r);
}

}  // namespace tsr::dev
