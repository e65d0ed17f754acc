// SPDX-License-Identifier: Apache-2.0
// Regions with reductions of rows for a fixed number of blocks that walk over them, so that the next rows are fetched
// while one is worked on, and sums over all rows (the gradients of a norm's scale and bias) add up in registers. With
// DEPTH > 0 rows come by bulk copies into a ring of DEPTH places in shared memory. What the blocks have of sums over
// rows is left in memory and joined by a second kernel in a fixed order.
#pragma once

#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "engines/cuda/fused/rows.cuh"

namespace tsr::dev {

// The places of a group of threads in shared memory: rows that were asked for and have not been used yet.
template <class C>
struct Ring {
  char* places;   // of this group; those of the other groups lie between them
  u64* arrivals;  // one for each place
  i64 pitch;      // from one place to the next

  char* place(int slot) const { return places + slot * pitch; }
  // Asked by one thread.
  template <class Index, class Args>
  void fetch(const Args& a, i64 row, int slot) const {
    if (row >= a.head.rows) return;
    i32 length = i32(a.head.length);
    Index base[C::kOperands + 1] = {};
    locate<C::kOperands, C::kOuter, true>(a, Index(row), base);
    barrier_expect(arrivals + slot, u32(length * C::kStagedBytes));
    C::fetch(a, base, place(slot), length, arrivals + slot);
  }
};

template <template <int> class Code, int V, int THREADS, int KEEP, int DEPTH, class Index, class Args>
void walk(const Args& a) {
  using C = Code<V>;
  int thread = threadIdx.x % THREADS, group = threadIdx.x / THREADS, groups = blockDim.x / THREADS;
  i64 step = i64(gridDim.x) * groups, place_bytes = a.head.length * C::kStagedBytes;
  auto* arrivals = reinterpret_cast<u64*>(shared_memory() + DEPTH * groups * place_bytes);
  auto* scratch = reinterpret_cast<typename C::Partial*>(arrivals + DEPTH * groups);
  Ring<C> ring{shared_memory() + group * place_bytes, arrivals + group * DEPTH, groups * place_bytes};
  i64 index = i64(blockIdx.x) * groups + group;
  if constexpr (DEPTH > 0) {
    if (thread == 0)
      for (int slot = 0; slot < DEPTH; ++slot) barrier_init(ring.arrivals + slot, 1);
    barriers_ready();
    __syncthreads();
    if (thread == 0)
      for (int slot = 0; slot < DEPTH; ++slot) ring.template fetch<Index>(a, index + slot * step, slot);
  }
  typename C::Sums sums[KEEP];
  RowState<C, KEEP> row;
  int present = 0;
#pragma unroll
  for (int j = 0; j < KEEP; ++j) {
    C::clear(sums[j]);
    if (thread + j * THREADS >= a.head.length) continue;
    present = j + 1;
    Index base[C::kOperands + 1] = {}, at[C::kOperands + 1];
    along<C>(a, base, Index(thread + j * THREADS), at);
    C::load_fixed(a, at, row.x[j]);
  }
  Index base[C::kOperands + 1] = {};
  typename C::Rows next;
  auto find = [&](i64 i) {
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k) base[k] = 0;
    locate<C::kOperands, C::kOuter, true>(a, Index(i < a.head.rows ? i : 0), base);
  };
  find(index);
  C::before(a, base, next);
  int slot = 0, leader = 0;
  u32 phase = 0, odd = 0;
  // All groups of a block go round equally often: they meet at barriers.
  for (; index - group < a.head.rows; index += step) {
    row.present = index < a.head.rows ? present : 0;
    row.r = next;
    find(index + step);
    C::before(a, base, next);  // needed in the next round only: its loads have time
    find(index);
    if (DEPTH > 0 && row.present) barrier_wait(ring.arrivals + slot, phase);
#pragma unroll
    for (int j = 0; j < KEEP; ++j) {
      if (j >= row.present) continue;
      Index at[C::kOperands + 1];
      along<C>(a, base, Index(thread + j * THREADS), at);
      C::load_moving(a, at, ring.place(slot), i32(a.head.length), thread + j * THREADS, row.x[j]);
    }
    row_stage<C, 0, THREADS, KEEP, 1>(a, base, thread, row, scratch, odd);
    if constexpr (DEPTH > 0) {
      // All threads have what they need of the place, and the group has met since. Warps take turns to ask.
      if constexpr (THREADS <= 32) __syncwarp();
      if (thread == leader) ring.template fetch<Index>(a, index + DEPTH * step, slot);
      leader = leader + 32 < THREADS ? leader + 32 : 0;
      if (++slot == DEPTH) slot = 0, phase ^= 1;
    }
    odd ^= C::kStages & 1;
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
  }
  if constexpr (C::kAcross) {
    // The groups of a block, then the block's share of memory.
    auto* shared = reinterpret_cast<typename C::Sums*>(shared_memory());
    auto* all = static_cast<typename C::Sums*>(a.head.partials) + i64(blockIdx.x) * a.head.length;
#pragma unroll
    for (int j = 0; j < KEEP; ++j) {
      __syncthreads();
      shared[threadIdx.x] = sums[j];
      for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        if (group >= half) continue;
        C::add(sums[j], shared[half * THREADS + threadIdx.x]);
        shared[threadIdx.x] = sums[j];
      }
      if (group == 0 && thread + j * THREADS < a.head.length) all[thread + j * THREADS] = sums[j];
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
