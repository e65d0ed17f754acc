// SPDX-License-Identifier: Apache-2.0
// What the kernels of causal convolutions share. A thread works on V neighbouring channels and on spans of times; all
// it needs of a signal lies in its registers. RUN: times that are moved at once where they lie side by side (V is 1
// then).
#pragma once

#include "device/memory.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/conv1d/args.cuh"

namespace tsr::dev {

// A thread's part of the work.
struct Part {
  i64 channel;  // the first
  i32 channel_thread, span_thread, span_threads;
  i32 first, last;  // spans, in steps of span_threads
  i32 split;
};

template <int V>
Part find_part(const Share& s, i32 block) {
  Part p;
  i32 thread = i32(threadIdx.x);
  p.span_threads = i32(blockDim.x) / s.channel_threads;
  p.channel_thread = s.channels_fast ? thread % s.channel_threads : thread / p.span_threads;
  p.span_thread = s.channels_fast ? thread / s.channel_threads : thread % p.span_threads;
  p.split = divide(block, s.channel_blocks);
  i64 channel_block = block - p.split * i32(s.channel_blocks.value);
  p.channel = (channel_block * s.channel_threads + p.channel_thread) * V;
  p.first = p.split * s.spans_of_block + p.span_thread;
  p.last = min((p.split + 1) * s.spans_of_block, s.spans);
  if (p.channel >= s.channels) p.first = p.last;  // nothing to do
  return p;
}

// Where a span lies.
struct Span {
  i32 batch, time;
};
template <int STEP>
Span find_span(const Share& s, i32 span) {
  i32 batch = divide(span, s.spans_of_row);
  return {batch, (span - batch * i32(s.spans_of_row.value)) * STEP};
}

constexpr int round_up(int n, int to) { return (n + to - 1) / to * to; }
// Times that a filter of so many taps looks back, in whole runs.
template <int TAPS, int RUN>
constexpr int kHalo = round_up(TAPS - 1, RUN);

template <class T>
T* row_of(const Signal& s, i64 batch, i64 channel) {
  return static_cast<T*>(s.data) + batch * s.steps[0] + channel * s.steps[1];
}

// N times from `time` on; those outside the sequence are 0.
template <int RUN, class T, class L, int N, int V>
void load_times(const Signal& s, i64 batch, i64 channel, i32 time, i32 length, L (&out)[N][V]) {
  const T* row = row_of<const T>(s, batch, channel);
#pragma unroll
  for (int n = 0; n < N; n += RUN) {
    i32 t = time + n;
#pragma unroll
    for (int r = 0; r < RUN; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v) out[n + r][v] = L(0);
    if constexpr (V > 1) {
      if (t < 0 || t >= length) continue;
      Vec<T, V> x;
      load_vector(row + i64(t) * s.steps[2], x);
      unpack(x, out[n]);
    } else if constexpr (RUN > 1) {
      if (t >= 0 && t + RUN <= length) {
        Vec<T, RUN> x;
        load_vector(row + t, x);
        L run[RUN];
        unpack(x, run);
#pragma unroll
        for (int r = 0; r < RUN; ++r) out[n + r][0] = run[r];
      } else {
#pragma unroll
        for (int r = 0; r < RUN; ++r)
          if (t + r >= 0 && t + r < length) out[n + r][0] = to_lane<L>(row[t + r]);
      }
    } else {
      if (t >= 0 && t < length) out[n][0] = to_lane<L>(row[i64(t) * s.steps[2]]);
    }
  }
}

template <int RUN, class T, class L, int N, int V>
void store_times(const Signal& s, i64 batch, i64 channel, i32 time, i32 length, const L (&in)[N][V]) {
  if (!s.data) return;  // nobody wants it
  T* row = row_of<T>(s, batch, channel);
#pragma unroll
  for (int n = 0; n < N; n += RUN) {
    i32 t = time + n;
    if constexpr (V > 1) {
      if (t >= length) continue;
      Vec<T, V> y;
      pack(in[n], y);
      store_vector(row + i64(t) * s.steps[2], y);
    } else if constexpr (RUN > 1) {
      if (t + RUN <= length) {
        Vec<T, RUN> y;
        L run[RUN];
#pragma unroll
        for (int r = 0; r < RUN; ++r) run[r] = in[n + r][0];
        pack(run, y);
        store_vector(row + t, y);
      } else {
#pragma unroll
        for (int r = 0; r < RUN; ++r)
          if (t + r < length) row[t + r] = from_lane<T>(in[n + r][0]);
      }
    } else {
      if (t < length) row[i64(t) * s.steps[2]] = from_lane<T>(in[n][0]);
    }
  }
}

template <class W, class L, int TAPS, int V>
void load_taps(const Filter& f, i64 channel, i32 from, L (&w)[TAPS][V]) {
#pragma unroll
  for (int j = 0; j < TAPS; ++j)
#pragma unroll
    for (int v = 0; v < V; ++v) {
      w[j][v] = L(0);
      if (from + j < f.taps)
        w[j][v] =
            to_lane<L>(static_cast<const W*>(f.data)[(channel + v) * f.steps[0] + f.first + (from + j) * f.steps[1]]);
    }
}

template <class B, class L, int V>
void load_channels(const PerChannel& b, i64 channel, L (&out)[V]) {
#pragma unroll
  for (int v = 0; v < V; ++v)
    out[v] = b.data ? to_lane<L>(static_cast<const B*>(b.data)[(channel + v) * b.step]) : L(0);
}

// sum[i] += sum_j x[time + i - j] w_j, or with x[time + i + j] when going BACK, over the taps from `from` on. Taps that
// meet nothing do not count, even if they are not finite.
template <bool BACK, class X, int RUN, class L, int STEP, int TAPS, int V>
void add_group(const Signal& x, const L (&w)[TAPS][V], i32 from, i32 taps, Span at, i64 channel, i32 length,
               L (&sum)[STEP][V]) {
  constexpr int kBack = kHalo<TAPS, RUN>;
  L s[kBack + STEP][V];
  load_times<RUN, X>(x, at.batch, channel, BACK ? at.time + from : at.time - from - kBack, length, s);
  bool inside = BACK ? at.time + STEP + from + TAPS <= length : at.time >= from + TAPS;
  if (inside && from + TAPS <= taps) {
#pragma unroll
    for (int i = 0; i < STEP; ++i)
#pragma unroll
      for (int j = 0; j < TAPS; ++j)
#pragma unroll
        for (int v = 0; v < V; ++v) sum[i][v] += s[BACK ? i + j : kBack + i - j][v] * w[j][v];
    return;
  }
#pragma unroll
  for (int i = 0; i < STEP; ++i)
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
      i32 t = BACK ? at.time + i + from + j : at.time + i - from - j;
      if (from + j >= taps || t < 0 || t >= length) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) sum[i][v] += s[BACK ? i + j : kBack + i - j][v] * w[j][v];
    }
}

// The same over all taps of a filter of any length.
template <bool BACK, class X, class W, int TAPS, int RUN, class L, int STEP, int V>
void add_taps(const Signal& x, const Filter& f, Span at, i64 channel, i32 length, L (&sum)[STEP][V]) {
  i32 reach = BACK ? length - at.time : at.time + STEP;  // taps beyond it meet nothing
  for (i32 from = 0; from < f.taps && from < reach; from += TAPS) {
    L w[TAPS][V];
    load_taps<W>(f, channel, from, w);
    add_group<BACK, X, RUN>(x, w, from, f.taps, at, channel, length, sum);
  }
}

}  // namespace tsr::dev
