// SPDX-License-Identifier: Apache-2.0
// Regions without reductions: every thread takes UNROLL vectors that lie a block apart, loads them all before it
// computes, and so keeps enough memory accesses in flight.
#pragma once

#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <template <int> class Code, int V, int UNROLL, class Index, class Args>
void pointwise(const Args& a) {
  using C = Code<V>;
  typename C::Rows r;
  typename C::Kept kept;
  typename C::Late none;
  typename C::Sums sums;
  Index origin[C::kOperands + 1] = {};
  C::before(a, origin, r);
  i64 first = i64(blockIdx.x) * (UNROLL * blockDim.x) + threadIdx.x;
  typename C::Loaded x[UNROLL];
  Index at[UNROLL][C::kOperands + 1];
#pragma unroll
  for (int u = 0; u < UNROLL; ++u) {
    i64 index = first + i64(u) * blockDim.x;
    if (index >= a.head.length) continue;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) at[u][k] = 0;
    locate<C::kOperands, C::kInner, false>(a, Index(index), at[u]);
    C::load(a, at[u], x[u]);
  }
#pragma unroll
  for (int u = 0; u < UNROLL; ++u)
    if (first + i64(u) * blockDim.x < a.head.length) C::store(a, at[u], x[u], none, kept, r, sums);
  // What is left of one run of memory that is no whole vector.
  if constexpr (V > 1 && C::kInner == 1) {
    if (blockIdx.x == 0 && threadIdx.x < a.head.tail) {
      using One = Code<1>;
      typename One::Rows rows;
      typename One::Kept kept_one;
      typename One::Late late;
      One::before(a, origin, rows);
      Index end[C::kOperands + 1];
#pragma unroll
      for (int k = 0; k < C::kOperands; ++k)
        end[k] = Index(a.head.length * a.operands[k].inner[0] + i64(threadIdx.x) * a.operands[k].step);
      typename One::Loaded last;
      One::load(a, end, last);
      typename One::Sums none_either;
      One::store(a, end, last, late, kept_one, rows, none_either);
    }
  }
}

}  // namespace tsr::dev
