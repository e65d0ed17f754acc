// SPDX-License-Identifier: Apache-2.0
// Two causal convolutions with gates between them, stage by stage: what a long filter looks back (or ahead) for comes
// from the workspace.
#pragma once

#include "engines/cuda/conv1d/spans.cuh"

namespace tsr::dev {

// p0, g = p1 p2
template <class X, class W, class L, int V, int RUN, int TAPS, int STEP>
void gated_project(const GatedArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  i32 length = a.share.length;
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L r[3][STEP][V] = {};
#pragma unroll
    for (int c = 0; c < 3; ++c) add_taps<false, X, W, TAPS, RUN>(a.x[c], a.proj[c], at, p.channel, length, r[c]);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) r[1][i][v] *= r[2][i][v];
    store_times<RUN, L>(a.p[0], at.batch, p.channel, at.time, length, r[0]);
    store_times<RUN, L>(a.g, at.batch, p.channel, at.time, length, r[1]);
  }
}

// y = mixer * g + skip g, gated = y p0
template <class W, class B, class Y, class Z, class L, int V, int RUN, int TAPS, int STEP>
void gated_mix(const GatedArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  i32 length = a.share.length;
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L skip[V], y[STEP][V] = {}, other[STEP][V];
    load_channels<B>(a.skip, p.channel, skip);
    add_taps<false, L, W, TAPS, RUN>(a.g, a.mixer, at, p.channel, length, y);
    load_times<RUN, L>(a.g, at.batch, p.channel, at.time, length, other);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) y[i][v] += skip[v] * other[i][v];
    store_times<RUN, Y>(a.y, at.batch, p.channel, at.time, length, y);
    load_times<RUN, L>(a.p[0], at.batch, p.channel, at.time, length, other);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) y[i][v] *= other[i][v];
    store_times<RUN, Z>(a.gated, at.batch, p.channel, at.time, length, y);
  }
}

// p1, p2, g = p1 p2, e = dy p0, and the gradient of p0, dy y.
template <class X, class W, class Y, class D, class L, int V, int RUN, int TAPS, int STEP>
void gated_start_back(const GatedArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  i32 length = a.share.length;
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L r[3][STEP][V] = {}, y[STEP][V], dy[STEP][V];
#pragma unroll
    for (int c = 0; c < 3; ++c) add_taps<false, X, W, TAPS, RUN>(a.x[c], a.proj[c], at, p.channel, length, r[c]);
    store_times<RUN, L>(a.p[1], at.batch, p.channel, at.time, length, r[1]);
    store_times<RUN, L>(a.p[2], at.batch, p.channel, at.time, length, r[2]);
    load_times<RUN, Y>(a.y, at.batch, p.channel, at.time, length, y);
    load_times<RUN, D>(a.dy, at.batch, p.channel, at.time, length, dy);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        r[1][i][v] *= r[2][i][v];
        r[0][i][v] *= dy[i][v];
        y[i][v] *= dy[i][v];
      }
    store_times<RUN, L>(a.g, at.batch, p.channel, at.time, length, r[1]);
    store_times<RUN, L>(a.e, at.batch, p.channel, at.time, length, r[0]);
    store_times<RUN, L>(a.p[0], at.batch, p.channel, at.time, length, y);
  }
}

// dg[t] = sum_j e[t + j] mixer_j + skip e[t]; the gradients of p1 and p2, dg p2 and dg p1, take their places.
template <class W, class B, class L, int V, int RUN, int TAPS, int STEP>
void gated_mix_back(const GatedArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  i32 length = a.share.length;
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
    L skip[V], dg[STEP][V] = {}, e[STEP][V], p1[STEP][V], p2[STEP][V];
    load_channels<B>(a.skip, p.channel, skip);
    add_taps<true, L, W, TAPS, RUN>(a.e, a.mixer, at, p.channel, length, dg);
    load_times<RUN, L>(a.e, at.batch, p.channel, at.time, length, e);
    load_times<RUN, L>(a.p[1], at.batch, p.channel, at.time, length, p1);
    load_times<RUN, L>(a.p[2], at.batch, p.channel, at.time, length, p2);
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        L d = dg[i][v] + skip[v] * e[i][v];
        dg[i][v] = d * p2[i][v];
        p1[i][v] *= d;
      }
    store_times<RUN, L>(a.p[1], at.batch, p.channel, at.time, length, dg);
    store_times<RUN, L>(a.p[2], at.batch, p.channel, at.time, length, p1);
  }
}

// dx_c[t] = sum_j dp_c[t + j] proj_c,j
template <class W, class X, class L, int V, int RUN, int TAPS, int STEP>
void gated_project_back(const GatedArgs& a) {
  Part p = find_part<V>(a.share, i32(blockIdx.x));
  for (i32 span = p.first; span < p.last; span += p.span_threads) {
    Span at = find_span<STEP>(a.share, span);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      L dx[STEP][V] = {};
      add_taps<true, L, W, TAPS, RUN>(a.p[c], a.proj[c], at, p.channel, a.share.length, dx);
      store_times<RUN, X>(a.dx[c], at.batch, p.channel, at.time, a.share.length, dx);
    }
  }
}

}  // namespace tsr::dev
