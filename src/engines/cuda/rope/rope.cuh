// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings. A thread takes V neighbouring pairs at one position, in SEQUENCES heads: all of them turn by the
// same angles, and their loads are under way together. Angles come first: their reduction is a call, which would have
// to keep everything that is loaded.
#pragma once

#include "device/memory.cuh"
#include "engines/cuda/rope/args.cuh"

namespace tsr::dev {

inline void sine_cosine(float angle, float* s, float* c) { sincosf(angle, s, c); }
inline void sine_cosine(double angle, double* s, double* c) { sincos(angle, s, c); }

// Where a head's sequence starts; false if it does not reach as far as `position`.
inline bool find_sequence(const Ragged& r, const i64* steps, i64 batch, i64 head, i64 position, i64* at) {
  *at = (r.offsets ? ragged_start(r, batch) : batch * steps[0]) + head * steps[1];
  return !r.offsets || position < ragged_steps(r, batch);
}

template <class X, class Y, class Angle, class L, int V, int SEQUENCES, class Index>
void rope(const RopeArgs& a) {
  i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= a.count) return;
  Index rest = divide(Index(thread), a.pieces), group = divide(rest, a.positions);
  i64 element = (Index(thread) - rest * Index(a.pieces.value)) * V, position = rest - group * Index(a.positions.value);
  bool passes = element < a.passing;
  i64 pair = element - a.passing;
  const X* x = static_cast<const X*>(a.x) + position * a.x_steps[2] + element * a.x_steps[3];
  Y* y = static_cast<Y*>(a.y) + position * a.y_steps[2] + element * a.y_steps[3];

  L cosine[V], sine[V], scale = L(a.scale), signed_scale = L(a.scale * a.sign);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    cosine[i] = scale;
    if (passes) continue;
    i64 at = position * a.angle_steps[0] + (pair + i) * a.angle_steps[1];
    L s, c;
    sine_cosine(to_lane<L>(static_cast<const Angle*>(a.angles)[at]), &s, &c);
    cosine[i] = scale * c;
    sine[i] = signed_scale * s;
  }

  Vec<X, V> low[SEQUENCES] = {}, high[SEQUENCES] = {};
  i64 to[SEQUENCES];
  bool stored[SEQUENCES] = {};
#pragma unroll
  for (int u = 0; u < SEQUENCES; ++u) {
    Index sequence = group * SEQUENCES + u;
    if (sequence >= a.sequences) continue;
    Index batch = divide(sequence, a.heads), head = sequence - batch * Index(a.heads.value);
    i64 at;
    stored[u] = find_sequence(a.y_ragged, a.y_steps, batch, head, position, &to[u]);
    if (!find_sequence(a.x_ragged, a.x_steps, batch, head, position, &at)) continue;
    const X* from = x + at;
    if constexpr (V > 1)
      load_vector(from, low[u]);
    else
      low[u].v[0] = *from;
    if (passes) continue;
    if constexpr (V > 1)
      load_vector(from + a.turning, high[u]);
    else
      high[u].v[0] = from[a.turning * a.x_steps[3]];
  }

#pragma unroll
  for (int u = 0; u < SEQUENCES; ++u) {
    if (!stored[u]) continue;
    L l[V], h[V] = {};
    unpack(low[u], l);
    if (!passes) unpack(high[u], h);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      L turned = passes ? l[i] * cosine[i] : l[i] * cosine[i] - h[i] * sine[i];
      if (!passes) h[i] = h[i] * cosine[i] + l[i] * sine[i];
      l[i] = turned;
    }
    Vec<Y, V> first, second;
    pack(l, first);
    pack(h, second);
    if constexpr (V > 1) {
      store_vector(y + to[u], first);
      if (!passes) store_vector(y + to[u] + a.turning, second);
    } else {
      y[to[u]] = first.v[0];
      if (!passes) y[to[u] + a.turning * a.y_steps[3]] = second.v[0];
    }
  }
}

}  // namespace tsr::dev
