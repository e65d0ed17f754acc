// SPDX-License-Identifier: Apache-2.0
// Causal convolutions with one filter for each channel, and their gradients.
#pragma once

#include "engines/cuda/conv1d/sums.cuh"

namespace tsr::dev {

// z = bias + sum_j x[t - j] w_j
template <class X, class W, class B, class L, int V, int RUN, int TAPS>
struct Convolution {
  L w[TAPS][V], bias[V];

  // What is the same for all spans of a thread.
  void start(const CausalArgs& a, i64 channel) {
    load_channels<B>(a.bias, channel, bias);
    if constexpr (TAPS <= kShortTaps) load_taps<W>(a.w, channel, 0, w);
  }
  template <int STEP>
  void run(const CausalArgs& a, Span at, i64 channel, L (&z)[STEP][V]) const {
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) z[i][v] = bias[v];
    if constexpr (TAPS <= kShortTaps)
      add_group<false, X, RUN>(a.x, w, 0, TAPS, at, channel, a.share.length, z);
    else
      add_taps<false, X, W, TAPS, RUN>(a.x, a.w, at, channel, a.share.length, z);
  }
};

// y = act(z)
template <class X, class W, class B, class Y, class L, int V, int RUN, int TAPS, int STEP>
void causal_forward(const CausalArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  if (p.first >= p.last) return;
  Convolution<X, W, B, L, V, RUN, TAPS> convolution;
  convolution.start(a, p.channel);
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L z[STEP][V];
    convolution.run(a, at, p.channel, z);
    if (a.silu) {
#pragma unroll
      for (int i = 0; i < STEP; ++i)
#pragma unroll
        for (int v = 0; v < V; ++v) z[i][v] = op_swish(z[i][v], L(1));
    }
    store_times<RUN, Y>(a.out, at.batch, p.channel, at.time, a.share.length, z);
  }
}

// The gradient before the activation, dz = dy act'(z), for filters that are too long for causal_backward.
template <class X, class W, class B, class D, class L, int V, int RUN, int TAPS, int STEP>
void causal_slope(const CausalArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  if (p.first >= p.last) return;
  Convolution<X, W, B, L, V, RUN, TAPS> convolution;
  convolution.start(a, p.channel);
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L z[STEP][V], dz[STEP][V];
    convolution.run(a, at, p.channel, z);
    load_times<RUN, D>(a.dy, at.batch, p.channel, at.time, a.share.length, dz);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) dz[i][v] = op_swish_bwd(z[i][v], dz[i][v], L(1));
    store_times<RUN, L>(a.out, at.batch, p.channel, at.time, a.share.length, dz);
  }
}

// dx[t] = sum_j dz[t + j] w_j, where dy holds dz.
template <class D, class W, class Y, class L, int V, int RUN, int TAPS, int STEP>
void causal_turned(const CausalArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L dx[STEP][V] = {};
    add_taps<true, D, W, TAPS, RUN>(a.dy, a.w, at, p.channel, a.share.length, dx);
    store_times<RUN, Y>(a.out, at.batch, p.channel, at.time, a.share.length, dx);
  }
}

// Gradients from one span. At the EDGE of a sequence, or with fewer than TAPS taps, a tap counts only if the filter has
// it and both its ends lie in the sequence.
template <bool EDGE, class L, int V, int TAPS, int STEP, int BACK>
void add_gradients(const CausalArgs& a, Span at, const L (&w)[TAPS][V], const L (&bias)[V],
                   const L (&x)[BACK + STEP + BACK][V], L (&dz)[STEP + BACK][V], L (&dx)[STEP][V],
                   L (&sums)[(TAPS + 1) * V]) {
  i32 length = a.share.length;
  if (a.silu) {
#pragma unroll
    for (int i = 0; i < STEP + TAPS - 1; ++i) {
      L z[V];
#pragma unroll
      for (int v = 0; v < V; ++v) z[v] = bias[v];
#pragma unroll
      for (int j = 0; j < TAPS; ++j) {
        if (EDGE && (j >= a.w.taps || at.time + i < j)) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) z[v] += x[BACK + i - j][v] * w[j][v];
      }
#pragma unroll
      for (int v = 0; v < V; ++v) dz[i][v] = op_swish_bwd(z[v], dz[i][v], L(1));
    }
  }
#pragma unroll
  for (int i = 0; i < STEP; ++i) {
    if (EDGE && at.time + i >= length) continue;
#pragma unroll
    for (int v = 0; v < V; ++v) sums[TAPS * V + v] += dz[i][v];
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
      if (EDGE && j >= a.w.taps) continue;
      bool before = !EDGE || at.time + i >= j, behind = !EDGE || at.time + i + j < length;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (before) sums[j * V + v] += dz[i][v] * x[BACK + i - j][v];
        if (behind) dx[i][v] += dz[i + j][v] * w[j][v];
      }
    }
  }
}

// All gradients of a filter of at most TAPS taps in one pass.
template <class X, class W, class B, class D, class Y, class L, int V, int RUN, int TAPS, int STEP>
void causal_backward(const CausalArgs& a) {
  constexpr int kBack = kHalo<TAPS, RUN>;
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  i32 length = a.share.length;
  L w[TAPS][V], bias[V], sums[(TAPS + 1) * V] = {};
  if (p.first < p.last) {
    load_taps<W>(a.w, p.channel, 0, w);
    load_channels<B>(a.bias, p.channel, bias);
  }
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L x[kBack + STEP + kBack][V], dz[STEP + kBack][V], dx[STEP][V] = {};
    load_times<RUN, X>(a.x, at.batch, p.channel, at.time - kBack, length, x);
    load_times<RUN, D>(a.dy, at.batch, p.channel, at.time, length, dz);
    if (at.time >= TAPS && at.time + STEP + TAPS <= length && a.w.taps == TAPS)
      add_gradients<false, L, V, TAPS, STEP, kBack>(a, at, w, bias, x, dz, dx, sums);
    else
      add_gradients<true, L, V, TAPS, STEP, kBack>(a, at, w, bias, x, dz, dx, sums);
    store_times<RUN, Y>(a.out, at.batch, p.channel, at.time, length, dx);
  }
  sum_over_spans(p, a.share.channel_threads, sums);
  store_sums<L, V, TAPS>(a.partials, p, a.share.channels, a.w.taps, 0, sums);
}

// sums[j] += dz[t] x[t - j] over one span, for taps from `from` on; behind the taps the sum of dz itself.
template <bool EDGE, class L, int V, int TAPS, int STEP, int BACK>
void add_products(Span at, i32 from, i32 length, const L (&x)[BACK + STEP][V], const L (&dz)[STEP][V],
                  L (&sums)[(TAPS + 1) * V]) {
#pragma unroll
  for (int i = 0; i < STEP; ++i) {
    if (EDGE && at.time + i >= length) continue;
#pragma unroll
    for (int v = 0; v < V; ++v) sums[TAPS * V + v] += dz[i][v];
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
      if (EDGE && at.time + i < from + j) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) sums[j * V + v] += dz[i][v] * x[BACK + i - j][v];
    }
  }
}

// The gradient of a filter of any length, TAPS taps in each block.
template <class X, class D, class L, int V, int RUN, int TAPS, int STEP>
void filter_gradient(const FilterGradientArgs& a) {
  constexpr int kBack = kHalo<TAPS, RUN>;
  i32 block = i32(blockIdx.x), rest = divide(block, a.groups), from = (block - rest * i32(a.groups.value)) * TAPS;
  Part p = find_part<V>(a.share, rest);
  i32 length = a.share.length;
  L sums[(TAPS + 1) * V] = {};
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L x[kBack + STEP][V], dz[STEP][V];
    load_times<RUN, X>(a.x, at.batch, p.channel, at.time - from - kBack, length, x);
    load_times<RUN, D>(a.dz, at.batch, p.channel, at.time, length, dz);
    if (at.time >= from + TAPS && at.time + STEP <= length)
      add_products<false, L, V, TAPS, STEP, kBack>(at, from, length, x, dz, sums);
    else
      add_products<true, L, V, TAPS, STEP, kBack>(at, from, length, x, dz, sums);
  }
  sum_over_spans(p, a.share.channel_threads, sums);
  store_sums<L, V, TAPS>(a.partials, p, a.share.channels, a.taps, from, sums);
}

}  // namespace tsr::dev
