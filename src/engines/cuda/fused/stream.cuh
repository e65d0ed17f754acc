// SPDX-License-Identifier: Apache-2.0
// Regions with reductions whose rows do not fit on chip: a block walks along its row once for each stage and once more
// to store. What the caches still hold is not read from memory again.
#pragma once

#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <class C, int S, int THREADS, class Index, class Args>
void stream_stage(const Args& a, const Index* base, typename C::Rows& r, typename C::Partial* scratch, u32& odd) {
  typename C::Partial p;
  C::template start<S>(p);
  for (i64 index = threadIdx.x; index < a.head.length; index += THREADS) {
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(index), at);
    typename C::Loaded x;
    typename C::Kept kept;
    C::load(a, at, x);
    C::template accumulate<S>(a, at, x, kept, r, p);
  }
  total<C, S, THREADS>(p, scratch + odd * (THREADS / 32));
  odd ^= 1;
  C::template rows<S>(a, base, p, r);
  if constexpr (S + 1 < C::kStages) stream_stage<C, S + 1, THREADS>(a, base, r, scratch, odd);
}

template <template <int> class Code, int V, int THREADS, class Index, class Args>
void stream(const Args& a) {
  using C = Code<V>;
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  u32 odd = 0;  // which of two sets of scratch memory is free
  for (i64 row = blockIdx.x; row < a.head.rows; row += gridDim.x) {
    Index base[C::kOperands + 1] = {};
    locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
    typename C::Rows r;
    C::before(a, base, r);
    stream_stage<C, 0, THREADS>(a, base, r, scratch, odd);
    for (i64 index = threadIdx.x; index < a.head.length; index += THREADS) {
      Index at[C::kOperands + 1];
      along<C>(a, base, Index(index), at);
      typename C::Loaded x;
      typename C::Late none;
      typename C::Sums sums;
      typename C::Kept kept;
      C::load(a, at, x);
      C::store(a, at, x, none, kept, r, sums);
    }
    if (threadIdx.x == 0) C::store_rows(a, base, r);
  }
}

}  // namespace tsr::dev
