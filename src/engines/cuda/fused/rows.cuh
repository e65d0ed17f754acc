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

// Joins the totals of the cluster's blocks, in the order of their numbers.
template <class C, int S, int CLUSTER>
void cluster_total(typename C::Partial& p, typename C::Partial* slots) {
  if constexpr (CLUSTER > 1) {
    int rank = cluster_rank();
    if constexpr (S == 0) cluster_wait();
    if (threadIdx.x < CLUSTER) *in_block(slots + rank, threadIdx.x) = p;
    cluster_sync();  // after the last one nobody writes into another block's memory: blocks may end
    p = slots[0];
#pragma unroll
    for (int i = 1; i < CLUSTER; ++i) C::template join<S>(p, slots[i]);
  }
}

template <class C, int S, int THREADS, int KEEP, int CLUSTER, class Index, class Args>
void row_stage(const Args& a, const Index* base, int thread, RowState<C, KEEP>& row, typename C::Partial* scratch) {
  constexpr int kStep = THREADS * CLUSTER;
  typename C::Partial p;
  C::template start<S>(p);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (j >= row.present) continue;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * kStep), at);
    C::template accumulate<S>(a, at, row.x[j], row.kept[j], row.r, p);
  }
  total<C, S, THREADS>(p, scratch);
  // A place of its own for each stage: others may still read what the last one left.
  cluster_total<C, S, CLUSTER>(p, scratch + (THREADS + 31) / 32 + S * CLUSTER);
  C::template rows<S>(a, base, p, row.r);
  if constexpr (S + 1 < C::kStages) row_stage<C, S + 1, THREADS, KEEP, CLUSTER>(a, base, thread, row, scratch);
}

template <template <int> class Code, int V, int THREADS, int KEEP, int CLUSTER, class Index, class Args>
void rows(const Args& a) {
  using C = Code<V>;
  auto* scratch = reinterpret_cast<typename C::Partial*>(shared_memory());
  constexpr int kStep = THREADS * CLUSTER;
  if constexpr (CLUSTER > 1) cluster_arrive();
  int thread = threadIdx.x % THREADS + (CLUSTER > 1 ? cluster_rank() * THREADS : 0);
  i64 index = CLUSTER > 1 ? blockIdx.x / CLUSTER : i64(blockIdx.x) * (blockDim.x / THREADS) + threadIdx.x / THREADS;
  // Threads beyond the last row still take part in barriers, with nothing to do.
  bool real = index < a.head.rows;
  Index base[C::kOperands + 1] = {};
  locate<C::kOperands, C::kOuter, true>(a, Index(real ? index : 0), base);
  RowState<C, KEEP> row;
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (!real || thread + j * kStep >= a.head.length) continue;
    row.present = j + 1;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * kStep), at);
    C::load(a, at, row.x[j]);
  }
  C::before(a, base, row.r);
  row_stage<C, 0, THREADS, KEEP, CLUSTER>(a, base, thread, row, scratch);
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    if (j >= row.present) continue;
    Index at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * kStep), at);
    typename C::Late late;
    typename C::Sums sums;
    C::load_late(a, at, late);
    C::store(a, at, row.x[j], late, row.kept[j], row.r, sums);
  }
  if (real && thread == 0) C::store_rows(a, base, row.r);
}

}  // namespace tsr::dev
