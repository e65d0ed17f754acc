// SPDX-License-Identifier: Apache-2.0
// Two causal convolutions with gates between them in one pass, all in registers: projections by filters of TAPS taps, a
// mixer of at most kLongTaps.
#pragma once

#include "engines/cuda/conv1d/sums.cuh"

namespace tsr::dev {

template <class X, class W, class M, class B, class Y, class Z, class L, int V, int RUN, int TAPS, int STEP>
void gated_forward(const GatedArgs& a) {
  constexpr int kBack = kHalo<kLongTaps, RUN>;
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  if (p.first >= p.last) return;
  i32 length = a.share.length;
  L w[3][TAPS][V], mixer[kLongTaps][V], skip[V];
#pragma unroll
  for (int c = 0; c < 3; ++c) load_taps<W>(a.proj[c], p.channel, 0, w[c]);
  load_taps<M>(a.mixer, p.channel, 0, mixer);
  load_channels<B>(a.skip, p.channel, skip);
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span), before = {at.batch, at.time - kBack};
    L g[kBack + STEP][V] = {}, other[kBack + STEP][V] = {}, y[STEP][V], gate[STEP][V] = {};
    add_group<false, X, RUN>(a.x[1], w[1], 0, TAPS, before, p.channel, length, g);
    add_group<false, X, RUN>(a.x[2], w[2], 0, TAPS, before, p.channel, length, other);
    add_group<false, X, RUN>(a.x[0], w[0], 0, TAPS, at, p.channel, length, gate);
#pragma unroll
    for (int i = 0; i < kBack + STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) g[i][v] *= other[i][v];
#pragma unroll
    for (int i = 0; i < STEP; ++i) {
#pragma unroll
      for (int v = 0; v < V; ++v) y[i][v] = skip[v] * g[kBack + i][v];
#pragma unroll
      for (int j = 0; j < kLongTaps; ++j) {
        if (j >= a.mixer.taps || at.time + i < j) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) y[i][v] += g[kBack + i - j][v] * mixer[j][v];
      }
#pragma unroll
      for (int v = 0; v < V; ++v) gate[i][v] *= y[i][v];
    }
    store_times<RUN, Y>(a.y, at.batch, p.channel, at.time, length, y);
    store_times<RUN, Z>(a.gated, at.batch, p.channel, at.time, length, gate);
  }
}

// What a thread keeps from span to span when it goes back.
template <class L, int V, int TAPS>
struct GatedBack {
  L w[3][TAPS][V], mixer[kLongTaps][V], skip[V];
  L dproj[3][(TAPS + 1) * V], dmixer[(kLongTaps + 1) * V];
};

// From d, the gradient of projection c: that of x, and what the span adds to that of the filter. At the EDGE of a
// sequence a tap counts only if both its ends lie in it.
template <bool EDGE, int C, class X, class DX, int RUN, int TAPS, int STEP, class L, int N, int V>
void project_back(const GatedArgs& a, Span at, i64 channel, const L (&d)[N][V], GatedBack<L, V, TAPS>& k) {
  constexpr int kBack = kHalo<TAPS, RUN>;
  i32 length = a.share.length;
  L x[kBack + STEP][V], dx[STEP][V] = {};
  load_times<RUN, X>(a.x[C], at.batch, channel, at.time - kBack, length, x);
#pragma unroll
  for (int i = 0; i < STEP; ++i) {
    if (EDGE && at.time + i >= length) continue;
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
      bool before = !EDGE || at.time + i >= j, behind = !EDGE || at.time + i + j < length;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (before) k.dproj[C][j * V + v] += d[i][v] * x[kBack + i - j][v];
        if (behind) dx[i][v] += d[i + j][v] * k.w[C][j][v];
      }
    }
  }
  store_times<RUN, DX>(a.dx[C], at.batch, channel, at.time, length, dx);
}

template <bool EDGE, class X, class Y, class D, class DX, int RUN, int TAPS, int STEP, class L, int V>
void gated_span_back(const GatedArgs& a, Span at, i64 channel, GatedBack<L, V, TAPS>& k) {
  constexpr int kP = kHalo<TAPS, RUN>, kM = kHalo<kLongTaps, RUN>, kNeeded = STEP + TAPS - 1;
  i32 length = a.share.length;
  L e[STEP + kP + kM][V] = {}, dy[STEP + kP + kM][V], d[STEP + kP][V];
  load_times<RUN, D>(a.dy, at.batch, channel, at.time, length, dy);
  load_times<RUN, Y>(a.y, at.batch, channel, at.time, length, d);
  add_group<false, X, RUN>(a.x[0], k.w[0], 0, TAPS, at, channel, length, e);
#pragma unroll
  for (int i = 0; i < STEP + kP + kM; ++i)
#pragma unroll
    for (int v = 0; v < V; ++v) {
      e[i][v] *= dy[i][v];
      if (i < STEP + kP) d[i][v] *= dy[i][v];
    }
  project_back<EDGE, 0, X, DX, RUN, TAPS, STEP>(a, at, channel, d, k);

  Span before = {at.batch, at.time - kM};
  L p1[kM + STEP + kP][V] = {}, p2[kM + STEP + kP][V] = {};
  add_group<false, X, RUN>(a.x[1], k.w[1], 0, TAPS, before, channel, length, p1);
  add_group<false, X, RUN>(a.x[2], k.w[2], 0, TAPS, before, channel, length, p2);
  L dg[kNeeded][V];
#pragma unroll
  for (int i = 0; i < kNeeded; ++i) {
#pragma unroll
    for (int v = 0; v < V; ++v) dg[i][v] = k.skip[v] * e[i][v];
#pragma unroll
    for (int j = 0; j < kLongTaps; ++j) {
      if (j >= a.mixer.taps || (EDGE && at.time + i + j >= length)) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) dg[i][v] += e[i + j][v] * k.mixer[j][v];
    }
  }
#pragma unroll
  for (int i = 0; i < STEP; ++i)
#pragma unroll
    for (int j = 0; j < kLongTaps; ++j) {
      if (EDGE && (at.time + i >= length || at.time + i < j)) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) k.dmixer[j * V + v] += e[i][v] * (p1[kM + i - j][v] * p2[kM + i - j][v]);
    }
#pragma unroll
  for (int i = 0; i < kNeeded; ++i)
#pragma unroll
    for (int v = 0; v < V; ++v) d[i][v] = dg[i][v] * p2[kM + i][v];
  project_back<EDGE, 1, X, DX, RUN, TAPS, STEP>(a, at, channel, d, k);
#pragma unroll
  for (int i = 0; i < kNeeded; ++i)
#pragma unroll
    for (int v = 0; v < V; ++v) d[i][v] = dg[i][v] * p1[kM + i][v];
  project_back<EDGE, 2, X, DX, RUN, TAPS, STEP>(a, at, channel, d, k);
}

// Gradients of everything.
template <class X, class W, class M, class B, class Y, class D, class DX, class L, int V, int RUN, int TAPS, int STEP>
void gated_backward(const GatedArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  GatedBack<L, V, TAPS> k = {};
  if (p.first < p.last) {
#pragma unroll
    for (int c = 0; c < 3; ++c) load_taps<W>(a.proj[c], p.channel, 0, k.w[c]);
    load_taps<M>(a.mixer, p.channel, 0, k.mixer);
    load_channels<B>(a.skip, p.channel, k.skip);
  }
  constexpr int kReach = TAPS + kLongTaps;
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    if (at.time >= kReach && at.time + STEP + kReach <= a.share.length)
      gated_span_back<false, X, Y, D, DX, RUN, TAPS, STEP>(a, at, p.channel, k);
    else
      gated_span_back<true, X, Y, D, DX, RUN, TAPS, STEP>(a, at, p.channel, k);
  }
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    sum_over_spans(p, a.share.channel_threads, k.dproj[c]);
    store_sums<L, V, TAPS>(a.partials[c], p, a.share.channels, TAPS, 0, k.dproj[c]);
    __syncthreads();  // the next sums take the same memory
  }
  sum_over_spans(p, a.share.channel_threads, k.dmixer);
  store_sums<L, V, kLongTaps>(a.partials[3], p, a.share.channels, a.mixer.taps, 0, k.dmixer);
}

}  // namespace tsr::dev
