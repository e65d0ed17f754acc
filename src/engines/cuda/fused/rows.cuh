// SPDX-License-Identifier: Apache-2.0
// Regions with reductions whose rows fit on chip: THREADS threads share a row, each keeps up to KEEP vectors of it in
// registers, so that memory is read once and written once whatever the number of stages. A row that is too long for one
// block is shared by the CLUSTER blocks of a cluster.
#pragma once

#include "device/cluster.cuh"
#include "engines/cuda/fused/common.cuh"

namespace tsr::dev {

template <class C, int KEEP>
struct RowState {
  typename C::Loaded x[KEEP];
  typename C::Kept kept[KEEP];
  typename C::Rows r;
  int present = 0;  // vectors that this thread has
};

// Joins the totals of the cluster's blocks, in the order of their numbers. `slots` holds two sets: others may still
// read what the call before left in the other one.
template <class C, int S, int CLUSTER>
void cluster_total(typename C::Partial& p, typename C::Partial* slots) {
  if constexpr (CLUSTER > 1) {
    int rank = cluster_rank();
    if (threadIdx.x < CLUSTER) *in_block(slots + rank, threadIdx.x) = p;
    cluster_sync();  // after the last one nobody writes into another block's memory: blocks may end
    p = slots[0];
#pragma unroll
    for (int i = 1; i < CLUSTER; ++i) C::template join<S>(p, slots[i]);
  }
}

// `first`: this thread's first vector. `odd`: which of two sets of scratch memory is free.
template <class C, int S, int THREADS, int KEEP, int CLUSTER, class Index, class Args>
void row_stage(const Args& a, const Index* base, int first, RowState<C, KEEP>& row, typename C::Partial* scratch,
               u32 odd) {
  typename C::Partial p;
  C::template start<S>(p);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (j >= row.present) continue;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(first + j * THREADS), at);
    C::template accumulate<S>(a, at, row.x[j], row.kept[j], row.r, p);
  }
  int warps = (blockDim.x + 31) / 32;
  total<C, S, THREADS>(p, scratch + odd * warps);
  cluster_total<C, S, CLUSTER>(p, scratch + 2 * warps + odd * CLUSTER);
  C::template rows<S>(a, base, p, row.r);
  if constexpr (S + 1 < C::kStages) row_stage<C, S + 1, THREADS, KEEP, CLUSTER>(a, base, first, row, scratch, odd ^ 1);
}

template <template <int> class Code, int V, int THREADS, int KEEP, int CLUSTER, class Index, class Args>
void rows(const Args& a) {
  using C = Code<V>;
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  // Blocks of a cluster have neighbouring parts of the row.
  i64 part = CLUSTER > 1 ? a.head.split_length : a.head.length, start = CLUSTER > 1 ? cluster_rank() * part : 0;
  i64 index = CLUSTER > 1 ? blockIdx.x / CLUSTER : i64(blockIdx.x) * (blockDim.x / THREADS) + threadIdx.x / THREADS;
  int first = int(start) + threadIdx.x % THREADS,
      end = int(start + part < a.head.length ? start + part : a.head.length);
  if constexpr (CLUSTER > 1) cluster_arrive();
  // Threads beyond the last row still take part in barriers, with nothing to do.
  bool real = index < a.head.rows;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(real ? index : 0), base);
  RowState<C, KEEP> row;
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (!real || first + j * THREADS >= end) continue;
    row.present = j + 1;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(first + j * THREADS), at);
    C::load(a, at, row.x[j]);
  }
  C::before(a, base, row.r);
  if constexpr (CLUSTER > 1) cluster_wait();
  row_stage<C, 0, THREADS, KEEP, CLUSTER>(a, base, first, row, scratch, 0);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (j >= row.present) continue;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(first + j * THREADS), at);
    typename C::Late late;
    typename C::Sums sums;
    C::load_late(a, at, late);
    C::store(a, at, row.x[j], late, row.kept[j], row.r, sums);
  }
  if (real && first == 0) C::store_rows(a, base, row.r);
}

}  // namespace tsr::dev
