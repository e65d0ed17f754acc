// SPDX-License-Identifier: Apache-2.0
// Causal convolutions with one filter for each channel, and their gradients.
#pragma once

#include "engines/cuda/conv1d/spans.cuh"

namespace tsr::dev {

// y = act(bias + sum_j x[t - j] w_j)
template <class X, class W, class B, class Y, class L, int V, int RUN, int TAPS, int STEP>
void causal_forward(const CausalArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  for (i64 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L bias[V], z[STEP][V];
    load_channels<B>(a.bias, p.channel, bias);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) z[i][v] = bias[v];
    add_taps<false, X, W, TAPS, RUN>(a.x, a.w, at.batch, p.channel, at.time, a.share.length, z);
    if (a.silu) {
#pragma unroll
      for (int i = 0; i < STEP; ++i)
#pragma unroll
        for (int v = 0; v < V; ++v) z[i][v] = silu(z[i][v]);
    }
    store_times<RUN, Y>(a.out, at.batch, p.channel, at.time, a.share.length, z);
  }
}

// The gradient before the activation, dz = dy act'(z), for filters that are too long for causal_backward.
template <class X, class W, class B, class D, class L, int V, int RUN, int TAPS, int STEP>
void causal_slope(const CausalArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  for (i64 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L bias[V], z[STEP][V], dz[STEP][V];
    load_channels<B>(a.bias, p.channel, bias);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) z[i][v] = bias[v];
    add_taps<false, X, W, TAPS, RUN>(a.x, a.w, at.batch, p.channel, at.time, a.share.length, z);
    load_times<RUN, D>(a.dy, at.batch, p.channel, at.time, a.share.length, dz);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) dz[i][v] *= silu_slope(z[i][v]);
    store_times<RUN, L>(a.out, at.batch, p.channel, at.time, a.share.length, dz);
  }
}

// dx[t] = sum_j dz[t + j] w_j, where dy holds dz.
template <class D, class W, class Y, class L, int V, int RUN, int TAPS, int STEP>
void causal_turned(const CausalArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  for (i64 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L dx[STEP][V] = {};
    add_taps<true, D, W, TAPS, RUN>(a.dy, a.w, at.batch, p.channel, at.time, a.share.length, dx);
    store_times<RUN, Y>(a.out, at.batch, p.channel, at.time, a.share.length, dx);
  }
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

// All gradients of a filter of at most TAPS taps in one pass.
template <class X, class W, class B, class D, class Y, class L, int V, int RUN, int TAPS, int STEP>
void causal_backward(const CausalArgs& a) {
  constexpr int kBack = kHalo<TAPS, RUN>;
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  i64 length = a.share.length;
  L w[TAPS][V], bias[V], sums[(TAPS + 1) * V] = {};
  if (p.first < p.last) {
    load_taps<W>(a.w, p.channel, 0, w);
    load_channels<B>(a.bias, p.channel, bias);
  }
  for (i64 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L x[kBack + STEP + kBack][V], dz[STEP + kBack][V], dx[STEP][V] = {};
    load_times<RUN, X>(a.x, at.batch, p.channel, at.time - kBack, length, x);
    load_times<RUN, D>(a.dy, at.batch, p.channel, at.time, length, dz);
    // In the sums below tap j counts if the filter has it and both ends lie in the sequence.
    if (a.silu) {
#pragma unroll
      for (int i = 0; i < STEP + TAPS - 1; ++i) {
        L z[V];
#pragma unroll
        for (int v = 0; v < V; ++v) z[v] = bias[v];
#pragma unroll
        for (int j = 0; j < TAPS; ++j) {
          if (j >= a.w.taps || at.time + i < j) continue;
#pragma unroll
          for (int v = 0; v < V; ++v) z[v] += x[kBack + i - j][v] * w[j][v];
        }
#pragma unroll
        for (int v = 0; v < V; ++v) dz[i][v] *= silu_slope(z[v]);
      }
    }
#pragma unroll
    for (int i = 0; i < STEP; ++i) {
      if (at.time + i >= length) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) sums[TAPS * V + v] += dz[i][v];
#pragma unroll
      for (int j = 0; j < TAPS; ++j) {
        if (j >= a.w.taps) continue;
        bool before = at.time + i >= j, behind = at.time + i + j < length;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (before) sums[j * V + v] += dz[i][v] * x[kBack + i - j][v];
          if (behind) dx[i][v] += dz[i + j][v] * w[j][v];
        }
      }
    }
    store_times<RUN, Y>(a.out, at.batch, p.channel, at.time, length, dx);
  }
  sum_over_spans(p, a.share.channel_threads, sums);
  store_sums<L, V, TAPS>(a.partials, p, a.share.channels, a.w.taps, 0, sums);
}

// The gradient of a filter: sum of dz[t] x[t - j] over all times and batches, TAPS taps in each block.
template <class X, class D, class L, int V, int RUN, int TAPS, int STEP>
void filter_gradient(const FilterGradientArgs& a) {
  constexpr int kBack = kHalo<TAPS, RUN>;
  i32 block = i32(blockIdx.x), rest = divide(block, a.groups), from = (block - rest * i32(a.groups.value)) * TAPS;
  Part p = find_part<V>(a.share, rest);
  i64 length = a.share.length;
  L sums[(TAPS + 1) * V] = {};
  for (i64 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L x[kBack + STEP][V], dz[STEP][V];
    load_times<RUN, X>(a.x, at.batch, p.channel, at.time - from - kBack, length, x);
    load_times<RUN, D>(a.dz, at.batch, p.channel, at.time, length, dz);
#pragma unroll
    for (int i = 0; i < STEP; ++i) {
      if (at.time + i >= length) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) sums[TAPS * V + v] += dz[i][v];
#pragma unroll
      for (int j = 0; j < TAPS; ++j) {
        if (at.time + i < from + j) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) sums[j * V + v] += dz[i][v] * x[kBack + i - j][v];
      }
    }
  }
  sum_over_spans(p, a.share.channel_threads, sums);
  store_sums<L, V, TAPS>(a.partials, p, a.share.channels, a.taps, from, sums);
}

// One thread for each sum; splits are added in their order.
template <class DW, class DB, class L>
void sum_partials(const SumArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x, width = a.taps + 1;
  if (index >= a.channels * width) return;
  i64 channel = index / width;
  i32 j = i32(index - channel * width);
  L sum = L(0);
  for (i64 s = 0; s < a.splits; ++s) sum += static_cast<const L*>(a.partials)[s * a.channels * width + index];
  if (j < a.taps && a.dw.data)
    static_cast<DW*>(a.dw.data)[channel * a.dw.steps[0] + a.dw.first + j * a.dw.steps[1]] = from_lane<DW>(sum);
  if (j == a.extra_index && a.extra.data) static_cast<DB*>(a.extra.data)[channel * a.extra.step] = from_lane<DB>(sum);
}

}  // namespace tsr::dev
