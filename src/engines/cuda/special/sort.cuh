// SPDX-License-Identifier: Apache-2.0
// Edges sorted by key, those of equal keys in their order: they are cut into chunks, each is counted by one warp, and
// the counts [row][chunk] become the places where each chunk puts its edges. The arguments have `edges`, `rows`,
// `chunks` and `chunk_edges`; sort_key and sort_lists say what an edge's key is, and where the lists lie.
#pragma once

#include "device/block.cuh"

namespace tsr::dev {

struct SortLists {
  i32 *sorted, *counts;
};

// A warp walks over its chunk, 32 edges at a time. PLACE: puts the edges where the counts, by now places, say.
template <class A, bool PLACE>
void sort_edges(const A& a) {
  SortLists l = sort_lists(a);
  int lane = threadIdx.x % 32;
  i64 chunk = (i64(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (chunk >= a.chunks) return;
  i64 end = (chunk + 1) * a.chunk_edges < a.edges ? (chunk + 1) * a.chunk_edges : a.edges;
  for (i64 base = chunk * a.chunk_edges; base < end; base += 32) {
    i64 i = base + lane, row = i < end ? sort_key(a, i) : -1;
    int before = 0, same = 0;
    for (int k = 0; k < 32; ++k) {
      i64 other = __shfl_sync(0xffffffffu, row, k);
      same += other == row;
      before += other == row && k < lane;
    }
    i32* count = l.counts + row * a.chunks + chunk;
    i32 start = row >= 0 ? *count : 0;
    if (PLACE && row >= 0) l.sorted[start + before] = i32(i);
    __syncwarp();  // all lanes have read before one of them writes
    if (row >= 0 && before == same - 1) *count = start + same;
    __syncwarp();
  }
}

// Counts become the sums of those before them. One block.
template <class A, int THREADS>
void scan_counts(const A& a) {
  i32 *counts = sort_lists(a).counts, *sums = reinterpret_cast<i32*>(shared_memory()), carry = 0;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  i64 all = a.rows * a.chunks;
  for (i64 base = 0; base < all; base += THREADS) {
    i64 i = base + threadIdx.x;
    i32 mine = i < all ? counts[i] : 0, sum = mine;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
      i32 other = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    i32 before = carry;
    for (int w = 0; w < THREADS / 32; ++w) {
      if (w < warp) before += sums[w];
      carry += sums[w];
    }
    if (i < all) counts[i] = before + sum - mine;
    __syncthreads();  // the sums are used again
  }
}

// After sorting, the count of a chunk is where its edges end: those of a row are [first, end) of the sorted ones.
template <class A>
i64 sorted_end(const A& a, i64 row) {
  return row < 0 ? 0 : sort_lists(a).counts[(row + 1) * a.chunks - 1];
}

}  // namespace tsr::dev
