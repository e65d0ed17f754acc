// SPDX-License-Identifier: Apache-2.0
// Sums over times and batches, for gradients of filters: each block adds up its part in shared memory and leaves it in
// the workspace; a second kernel adds the parts. The order is fixed.
#pragma once

#include "device/block.cuh"
#include "engines/cuda/conv1d/spans.cuh"

namespace tsr::dev {

// Adds up what the threads of a block that share channels have found, in a fixed order; the first of them gets it.
template <class L, int COUNT>
void sum_over_spans(const Part& p, i32 channel_threads, L (&sums)[COUNT]) {
  L* all = reinterpret_cast<L*>(shared_memory());
  auto mine = [&](i32 span_thread) { return all + (span_thread * channel_threads + p.channel_thread) * COUNT; };
#pragma unroll
  for (int k = 0; k < COUNT; ++k) mine(p.span_thread)[k] = sums[k];
  for (i32 half = p.span_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (p.span_thread < half)
#pragma unroll
      for (int k = 0; k < COUNT; ++k) mine(p.span_thread)[k] += mine(p.span_thread + half)[k];
  }
#pragma unroll
  for (int k = 0; k < COUNT; ++k) sums[k] = mine(p.span_thread)[k];
}

// Writes a thread's sums for its channels: those of taps from `from` on, and one more behind the last tap.
template <class L, int V, int TAPS>
void store_sums(void* partials, const Part& p, i64 channels, i32 taps, i32 from, const L (&sums)[(TAPS + 1) * V]) {
  if (p.span_thread != 0) return;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    if (p.channel + v >= channels) continue;
    L* to = static_cast<L*>(partials) + (p.split * channels + p.channel + v) * (taps + 1);
#pragma unroll
    for (int j = 0; j < TAPS; ++j)
      if (from + j < taps) to[from + j] = sums[j * V + v];
    if (from == 0) to[taps] = sums[TAPS * V + v];
  }
}

// One warp for each sum.
template <class DW, class DB, class L>
void sum_partials(const SumArgs& a) {
  i64 index = (i64(blockIdx.x) * blockDim.x + threadIdx.x) / 32, width = a.taps + 1;
  if (index >= a.channels * width) return;  // the whole warp
  i64 channel = index / width;
  i32 j = i32(index - channel * width), lane = i32(threadIdx.x) % 32;
  L sum = L(0);
#pragma unroll 4
  for (i64 s = lane; s < a.splits; s += 32) sum += static_cast<const L*>(a.partials)[s * a.channels * width + index];
  sum = warp_reduce<Add>(sum);
  if (lane != 0) return;
  if (j < a.taps && a.dw.data)
    static_cast<DW*>(a.dw.data)[channel * a.dw.steps[0] + a.dw.first + j * a.dw.steps[1]] = from_lane<DW>(sum);
  if (j == a.extra_index && a.extra.data) static_cast<DB*>(a.extra.data)[channel * a.extra.step] = from_lane<DB>(sum);
}

}  // namespace tsr::dev
