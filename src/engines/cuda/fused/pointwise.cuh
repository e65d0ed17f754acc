// SPDX-License-Identifier: Apache-2.0
// Regions without reductions: every thread takes UNROLL vectors that lie a block apart, loads them all before it
// computes, and so keeps enough memory accesses in flight.
#pragma once

#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <template <int> class Code, class Index, class Args>
void single(const Args& a, const Index* at) {
  using C = Code<1>;
  typename C::Rows rows;
  typename C::Kept kept;
  typename C::Late late;
  typename C::Sums sums;
  typename C::Loaded x;
  Index origin[C::kOperands + 1] = {};
  C::before(a, origin, rows);
  C::load(a, at, x);
  C::store(a, at, x, late, kept, rows, sums);
}

// What is left of one run of memory that is no whole vector: each takes one, or one takes all if they share bytes.
template <template <int> class Code, class Index, class Args>
void rest(const Args& a) {
  using C = Code<1>;
  if (blockIdx.x != 0 || threadIdx.x >= (C::kSharesBytes ? 1 : a.head.tail)) return;
  for (i64 i = threadIdx.x; i < a.head.tail; i += C::kSharesBytes ? 1 : blockDim.x) {
    Index at[C::kOperands + 1];
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k)
      at[k] = Index(a.head.length * a.operands[k].inner[0] + i * a.operands[k].step);
    single<Code>(a, at);
  }
}

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
  if constexpr (V > 1 && C::kInner == 1) rest<Code, Index>(a);
}

// Elements whose results share a byte: a thread takes them one after the other.
template <template <int> class Code, int V, int TOGETHER, class Index, class Args>
void shared_bytes(const Args& a) {
  i64 first = (i64(blockIdx.x) * blockDim.x + threadIdx.x) * TOGETHER;
  for (i64 index = first; index < first + TOGETHER && index < a.head.length; ++index) {
    Index at[Code<1>::kOperands + 1] = {};
    locate<Code<1>::kOperands, Code<1>::kInner, false>(a, Index(index), at);
    single<Code>(a, at);
  }
}

}  // namespace tsr::dev
