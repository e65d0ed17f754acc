// SPDX-License-Identifier: Apache-2.0
// Regions with reductions of short rows that lie side by side (blocks that share a scale factor across memory, softmax
// over few channels-first planes): a thread has V of them to itself, goes along them for each stage and once more to
// store. What it has read once the caches still hold.
#pragma once

#include "engines/cuda/fused/split.cuh"

namespace tsr::dev {

template <class C, int S, class Index, class Args>
void column_stage(const Args& a, const Index* base, typename C::Rows& r) {
  typename C::Partial p;
  C::template start<S>(p);
  each_element<C, 1>(a, base, 0, a.head.length, [&](const Index* at, const typename C::Loaded& x) {
    typename C::Kept kept;
    C::template accumulate<S>(a, at, x, kept, r, p);
  });
  C::template rows<S>(a, base, p, r);
  if constexpr (S + 1 < C::kStages) column_stage<C, S + 1>(a, base, r);
}

template <template <int> class Code, int V, class Index, class Args>
void columns(const Args& a) {
  using C = Code<V>;
  i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= a.head.rows) return;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
  typename C::Rows r;
  C::before(a, base, r);
  column_stage<C, 0>(a, base, r);
  each_element<C, 1>(a, base, 0, a.head.length, [&](const Index* at, const typename C::Loaded& x) {
    typename C::Late none;
    typename C::Sums sums;
    typename C::Kept kept;
    C::store(a, at, x, none, kept, r, sums);
  });
  C::store_rows(a, base, r);
}

}  // namespace tsr::dev
