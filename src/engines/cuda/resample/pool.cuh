// SPDX-License-Identifier: Apache-2.0
// Pooling with windows of K x K elements of 16 or 32 bits, of which each meets at least one element: the loads of a
// window stand before all else and have no conditions. What would lie outside is read from the nearest element, which
// the window holds as well: for a maximum it changes nothing, for a mean it counts as 0.
#pragma once

#include "device/fast.cuh"
#include "device/maxima.cuh"
#include "engines/cuda/resample/window.cuh"

namespace tsr::dev {

// The window of an output element along one axis.
template <int K>
struct PoolTaps {
  i32 first, size;  // first position, may be padding; size of x

  PoolTaps(const ResampleAxis& axis, i32 o)
      : first(o * i32(axis.first.scale.value) - i32(axis.first.base)), size(i32(axis.x)) {}
  bool is_inside(int k) const { return u32(first + k) < u32(size); }
  i32 at(int k) const { return max(min(first + k, size - 1), 0); }
  i32 count() const { return min(first + K, size) - max(first, 0); }
};

// Squares of S x S elements of x with which a window may begin, up to the last that holds an element.
template <int S>
i32 pool_starts(const ResampleAxis& axis) {
  return (i32(axis.x) + i32(axis.first.base) + S - 1) / S;
}

// A mean's weight of one element.
template <int K>
float pool_weight(const ResampleArgs& a, const PoolTaps<K>& y, const PoolTaps<K>& x) {
  return fast_reciprocal(float(a.kind == kMeanExclude ? y.count() * x.count() : K * K));
}

template <class Y, class I, int V>
void store_pooled(const ResampleArgs& a, i64 y, i64 index, const float (&result)[V], const i32 (&position)[V]) {
  if constexpr (!kSame<Y, none>) {
    float scaled[V];
#pragma unroll
    for (int i = 0; i < V; ++i) scaled[i] = float(a.alpha) * result[i];
    Vec<Y, V> out;
    pack(scaled, out);
    store_vector(static_cast<Y*>(a.y.data) + y, out);
  }
  if constexpr (!kSame<I, none>) {
    Vec<I, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) out.v[i] = I(position[i]);
    store_vector(static_cast<I*>(a.index_in_workspace ? a.workspace : a.index.data) + index, out);
  }
}

// Where channels lie side by side, a block takes a tile of rows and columns of a few vectors of channels, so that what
// neighbouring windows share comes from its cache.
struct PoolSpot {
  i32 n, vector, row, column;
  bool real;
};
inline PoolSpot find_pool_spot(const ResampleArgs& a, i32 rows, i32 columns) {
  i32 n = i32(blockIdx.x), thread = i32(threadIdx.x);
  i32 column_tile = cut(n, a.columns), row_tile = cut(n, a.rows), group = cut(n, a.depth);
  i32 vector = group * i32(a.channels.value) + cut(thread, a.channels);
  i32 row = row_tile * i32(a.tile.value) + cut(thread, a.tile), column = column_tile * a.tile_columns + thread;
  bool real = thread < a.tile_columns && row < rows && column < columns && vector < a.vectors;
  return {n, vector, row, column, real};
}

// A thread takes one output element of V channels.
template <class X, class Y, class I, int V, int K, bool MAX>
void pool_channels(const ResampleArgs& a) {
  PoolSpot s = find_pool_spot(a, i32(a.axes[1].y), i32(a.axes[2].y));
  if (!s.real) return;
  PoolTaps<K> y(a.axes[1], s.row), x(a.axes[2], s.column);
  const X* image = static_cast<const X*>(a.x.data) + s.n * a.x.strides[0] + s.vector * V;
  Vec<X, V> taps[K][K];
#pragma unroll
  for (int i = 0; i < K; ++i)
#pragma unroll
    for (int j = 0; j < K; ++j)
      load_vector(image + (y.at(i) * i32(a.x.strides[3]) + x.at(j) * i32(a.x.strides[4])), taps[i][j]);

  float result[V];
  i32 position[V];
  if constexpr (MAX && kSame<I, none>) {
    Vec<X, V> most = taps[0][0];
#pragma unroll
    for (int k = 1; k < K * K; ++k) take_larger(most, taps[k / K][k % K]);
    unpack(most, result);
  } else if constexpr (MAX) {
    auto here = [&](int k) { return (y.at(k / K) - y.first) * K + x.at(k % K) - x.first; };
    FirstLargest<X, V> most(taps[0][0], here(0));
#pragma unroll
    for (int k = 1; k < K * K; ++k) most.take(taps[k / K][k % K], here(k));
    most.finish(result, position);
  } else {
    float weight = pool_weight(a, y, x);
#pragma unroll
    for (int i = 0; i < V; ++i) result[i] = 0;
#pragma unroll
    for (int k = 0; k < K * K; ++k) {
      bool counts = y.is_inside(k / K) && x.is_inside(k % K);
      float v[V];
      unpack(taps[k / K][k % K], v);
#pragma unroll
      for (int i = 0; i < V; ++i) result[i] += weight * (counts ? v[i] : 0.0f);
    }
  }
  auto place = [&](const Operand& o) {
    return s.n * o.strides[0] + (s.row * i32(o.strides[3]) + s.column * i32(o.strides[4]) + s.vector * V);
  };
  store_pooled<Y, I>(a, place(a.y), place(a.index), result, position);
}

// Rows lie in memory in one piece: a thread takes V columns of K rows and gives the V / S output elements whose
// windows, S columns from each other, start P columns before them.
template <class X, class Y, class I, int V, int K, int S, int P, bool MAX>
void pool_rows(const ResampleArgs& a) {
  constexpr int kOut = V / S, kBehind = K - S - P > 0 ? K - S - P : 0, kSpan = P + V + kBehind;
  i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= a.threads) return;
  i32 rest = i32(thread), piece = cut(rest, a.columns), oy = cut(rest, a.rows), c = cut(rest, a.channels);
  i64 plane = rest * a.x.strides[0] + c * a.x.strides[1];

  PoolTaps<K> y(a.axes[1], oy);
  i32 width = i32(a.axes[2].x), first = piece * V;
  const X* image = static_cast<const X*>(a.x.data) + plane;
  Vec<X, V> middle[K];
  X before[K], behind[K];  // one element each, where there is one
#pragma unroll
  for (int i = 0; i < K; ++i) {
    const X* row = image + y.at(i) * i32(a.x.strides[3]);
    load_vector(row + first, middle[i]);
    if (P) before[i] = row[max(first - 1, 0)];
    if (kBehind) behind[i] = row[min(first + V, width - 1)];
  }

  float rows[K][kSpan];
#pragma unroll
  for (int i = 0; i < K; ++i) {
    float v[V];
    unpack(middle[i], v);
    if (P) rows[i][0] = to_lane<float>(before[i]);
#pragma unroll
    for (int j = 0; j < V; ++j) rows[i][P + j] = v[j];
    if (kBehind) rows[i][kSpan - 1] = to_lane<float>(behind[i]);
  }
  float result[kOut];
  i32 position[kOut];
#pragma unroll
  for (int o = 0; o < kOut; ++o) {
    PoolTaps<K> x(a.axes[2], piece * kOut + o);
    float weight = MAX ? 0.0f : pool_weight(a, y, x);
#pragma unroll
    for (int k = 0; k < K * K; ++k) {
      float v = rows[k / K][o * S + k % K];
      i32 here = (y.at(k / K) - y.first) * K + x.at(k % K) - x.first;
      if constexpr (!MAX) {
        bool counts = y.is_inside(k / K) && x.is_inside(k % K);
        result[o] = (k ? result[o] : 0.0f) + weight * (counts ? v : 0.0f);
      } else if (k == 0) {
        result[o] = v, position[o] = here;
      } else if constexpr (kSame<I, none>) {
        result[o] = larger(result[o], v);
      } else {
        take_first_largest(result[o], position[o], v, here);
      }
    }
  }
  auto place = [&](const Operand& o) {
    return rest * o.strides[0] + c * o.strides[1] + (oy * i32(o.strides[3]) + piece * kOut);
  };
  store_pooled<Y, I>(a, place(a.y), place(a.index), result, position);
}

}  // namespace tsr::dev
