// SPDX-License-Identifier: Apache-2.0
// Regions with reductions of few long rows, or of rows that lie side by side (columns, channels-last batch norm). Rows
// are cut into parts that all multiprocessors share. Each stage is a pass over the elements that leaves partial results
// and a small kernel that joins them, in a fixed order, and works out what is then known of each row; a last pass
// stores. A block is TX threads across rows by TY along them; where rows lie side by side a thread has W of them.
#pragma once

#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

// Joins what the TY threads of a row have; the first of them gets the total.
template <class C, int S, int TX, int TY>
void join_block(typename C::Partial& p) {
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  if constexpr (TX == 1) {
    total<C, S, TY>(p, scratch);
  } else {
    scratch[threadIdx.x] = p;
#pragma unroll
    for (int half = TY / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half * TX) {
        C::template join<S>(p, scratch[threadIdx.x + half * TX]);
        scratch[threadIdx.x] = p;
      }
    }
  }
}

constexpr int kAtOnce = 4;  // loads in flight

// Every TY-th element of a row from `first` on: some are loaded, then used.
template <class C, int TY, class Index, class Args, class Use>
void each_element(const Args& a, const Index* base, i64 first, i64 last, const Use& use) {
  for (i64 i = first; i < last; i += kAtOnce * TY) {
    typename C::Loaded x[kAtOnce];
    Index at[C::kOperands + 1];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (i + u * TY >= last) continue;
      along<C>(a, base, Index(i + u * TY), at);
      C::load(a, at, x[u]);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (i + u * TY >= last) continue;
      along<C>(a, base, Index(i + u * TY), at);
      use(at, x[u]);
    }
  }
}

// What is known of a row before stage S.
template <class C, int S, class Index, class Args>
void known_before(const Args& a, const Index* base, i64 row, typename C::Rows& r) {
  if constexpr (S == 0)
    C::before(a, base, r);
  else
    r = static_cast<const typename C::Rows*>(a.head.row_values)[row];
}

template <template <int> class Code, int V, int S, int TX, int TY, class Index, class Args>
void split_stage(const Args& a) {
  using C = Code<V>;
  // Every pass walks the other way: the one before left the elements it saw last in the cache.
  i64 tiles = (a.head.rows + TX - 1) / TX, block = S % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  i64 split = block / tiles, row = (block - split * tiles) * TX + threadIdx.x % TX;
  bool real = row < a.head.rows;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(real ? row : 0), base);
  typename C::Rows r;
  known_before<C, S>(a, base, real ? row : 0, r);
  typename C::Partial p;
  C::template start<S>(p);
  i64 first = split * a.head.split_length + threadIdx.x / TX, last = (split + 1) * a.head.split_length;
  if (last > a.head.length) last = a.head.length;
  if (!real) last = 0;
  if (C::kSamples[S] && last > split * a.head.split_length + kAtOnce * TY)
    last = split * a.head.split_length + kAtOnce * TY;
  each_element<C, TY>(a, base, first, last, [&](const Index* at, const typename C::Loaded& x) {
    typename C::Kept kept;
    C::template accumulate<S>(a, at, x, kept, r, p);
  });
  join_block<C, S, TX, TY>(p);
  if (real && threadIdx.x < TX) static_cast<typename C::Partial*>(a.head.partials)[split * a.head.rows + row] = p;
}

template <template <int> class Code, int V, int S, int TX, int TY, class Index, class Args>
void split_join(const Args& a) {
  using C = Code<V>;
  i64 row = i64(blockIdx.x) * TX + threadIdx.x % TX;
  bool real = row < a.head.rows;
  typename C::Partial p;
  C::template start<S>(p);
  for (i64 s = threadIdx.x / TX; real && s < a.head.splits; s += TY)
    C::template join<S>(p, static_cast<const typename C::Partial*>(a.head.partials)[s * a.head.rows + row]);
  join_block<C, S, TX, TY>(p);
  if (!real || threadIdx.x >= TX) return;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
  typename C::Rows r;
  known_before<C, S>(a, base, row, r);
  C::template rows<S>(a, base, p, r);
  if constexpr (S + 1 == C::kStages) C::store_rows(a, base, r);
  static_cast<typename C::Rows*>(a.head.row_values)[row] = r;
}

template <template <int> class Code, int V, int TX, int TY, class Index, class Args>
void split_store(const Args& a) {
  using C = Code<V>;
  i64 tiles = (a.head.rows + TX - 1) / TX, block = C::kStages % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  i64 split = block / tiles;
  i64 row = (block - split * tiles) * TX + threadIdx.x % TX;
  if (row >= a.head.rows) return;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
  typename C::Rows r;
  known_before<C, C::kStages>(a, base, row, r);
  i64 first = split * a.head.split_length + threadIdx.x / TX, last = (split + 1) * a.head.split_length;
  if (last > a.head.length) last = a.head.length;
  each_element<C, TY>(a, base, first, last, [&](const Index* at, const typename C::Loaded& x) {
    typename C::Late none;
    typename C::Sums sums;
    typename C::Kept kept;
    C::store(a, at, x, none, kept, r, sums);
  });
}

}  // namespace tsr::dev
