// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling with windows of K x K elements, S x S elements from each other: a thread takes elements of dx
// with which windows begin. Those that hold one of them are known then, so that all loads stand before the sums and
// none has a condition.
#pragma once

#include "engines/cuda/resample/pool.cuh"

namespace tsr::dev {

// I is `none` unless the maximum decides; something must be loaded all the same.
template <class I>
using PoolIndex = typename Either<kSame<I, none>, u8, I>::type;

// Channels lie side by side: a thread takes S x S elements of V channels. The windows that hold them are the one that
// begins with them and those before it.
template <class DY, class DX, class I, int V, int K, int S>
void pool_channels_bwd(const ResampleArgs& a) {
  constexpr int kBack = (K + S - 1) / S;  // windows along each axis
  const ResampleAxis &rows = a.axes[1], &columns = a.axes[2];
  PoolSpot s = find_pool_spot(a, pool_starts<S>(rows), pool_starts<S>(columns));
  if (!s.real) return;

  auto place = [&](const Operand& o, i32 row, i32 column) {
    return s.n * o.strides[0] + (row * i32(o.strides[3]) + column * i32(o.strides[4]) + s.vector * V);
  };
  const void* positions = a.index_in_workspace ? a.workspace : a.index.data;
  Vec<DY, V> dy[kBack][kBack];
  Vec<PoolIndex<I>, V> index[kBack][kBack];
#pragma unroll
  for (int i = 0; i < kBack; ++i)
#pragma unroll
    for (int j = 0; j < kBack; ++j) {
      i32 oy = clamp_to(s.row - i, i32(rows.y)), ox = clamp_to(s.column - j, i32(columns.y));
      load_vector(static_cast<const DY*>(a.y.data) + place(a.y, oy, ox), dy[i][j]);
      if constexpr (!kSame<I, none>)
        load_vector(static_cast<const I*>(positions) + place(a.index, oy, ox), index[i][j]);
    }

  float sum[S][S][V];
#pragma unroll
  for (int k = 0; k < S * S * V; ++k) sum[k / V / S][k / V % S][k % V] = 0;
#pragma unroll
  for (int i = kBack - 1; i >= 0; --i)
#pragma unroll
    for (int j = kBack - 1; j >= 0; --j) {
      i32 oy = s.row - i, ox = s.column - j;
      bool real = inside(oy, i32(rows.y)) && inside(ox, i32(columns.y));
      float weight = float(a.alpha);
      if constexpr (kSame<I, none>) weight *= pool_weight(a, PoolTaps<K>(rows, oy), PoolTaps<K>(columns, ox));
      float v[V];
      unpack(dy[i][j], v);
#pragma unroll
      for (int c = 0; c < V; ++c) v[c] = real ? weight * v[c] : 0.0f;
        // The elements of this square that the window holds.
#pragma unroll
      for (int y = 0; y < S && i * S + y < K; ++y)
#pragma unroll
        for (int x = 0; x < S && j * S + x < K; ++x)
#pragma unroll
          for (int c = 0; c < V; ++c)
            if (kSame<I, none> || index[i][j].v[c] == (i * S + y) * K + j * S + x) sum[y][x][c] += v[c];
    }

#pragma unroll
  for (int k = 0; k < S * S; ++k) {
    i32 y = s.row * S - i32(rows.first.base) + k / S, x = s.column * S - i32(columns.first.base) + k % S;
    if (!inside(y, i32(rows.x)) || !inside(x, i32(columns.x))) continue;
    Vec<DX, V> out;
    pack(sum[k / S][k % S], out);
    store_vector(static_cast<DX*>(a.x.data) + place(a.x, y, x), out);
  }
}

// OUT elements of a row from `first` on, with the neighbours of them that are wanted: BEFORE in front, the rest behind.
template <int BEFORE, int OUT, class T, int SPAN>
void load_piece(const T* row, i32 first, i32 width, T (&to)[SPAN]) {
  Vec<T, OUT> middle;
  load_vector(row + first, middle);
  if (BEFORE) to[0] = row[max(first - 1, 0)];
#pragma unroll
  for (int j = 0; j < OUT; ++j) to[BEFORE + j] = middle.v[j];
  if (SPAN > BEFORE + OUT) to[SPAN - 1] = row[min(first + OUT, width - 1)];
}

// Rows lie in memory in one piece, and windows start P columns before it: a thread takes V columns of S rows.
template <class DY, class DX, class I, int V, int K, int S, int P>
void pool_rows_bwd(const ResampleArgs& a) {
  // Windows that hold one of the columns: some that start with them, and one before and behind those at most.
  constexpr int kOut = V / S, kBefore = (K - 1 - P) / S, kBehind = (V - 1 + P) / S - kOut + 1;
  constexpr int kSpan = kBefore + kOut + kBehind, kBack = (K + S - 1) / S;
  static_assert(kBefore <= 1 && kBehind <= 1);
  const ResampleAxis &rows = a.axes[1], &columns = a.axes[2];
  i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= a.threads) return;
  i32 n = i32(thread), piece = cut(n, a.columns), square = cut(n, a.rows), c = cut(n, a.channels);

  auto plane = [&](const Operand& o) { return n * o.strides[0] + c * o.strides[1]; };
  const DY* gradients = static_cast<const DY*>(a.y.data) + plane(a.y);
  const auto* positions =
      static_cast<const PoolIndex<I>*>(a.index_in_workspace ? a.workspace : a.index.data) + plane(a.index);
  i32 first = piece * kOut, width = i32(columns.y);
  DY dy[kBack][kSpan];
  PoolIndex<I> index[kBack][kSpan];
#pragma unroll
  for (int i = 0; i < kBack; ++i) {
    i32 oy = clamp_to(square - i, i32(rows.y));
    load_piece<kBefore, kOut>(gradients + oy * i32(a.y.strides[3]), first, width, dy[i]);
    if constexpr (!kSame<I, none>)
      load_piece<kBefore, kOut>(positions + oy * i32(a.index.strides[3]), first, width, index[i]);
  }

  float sum[S][V];
#pragma unroll
  for (int k = 0; k < S * V; ++k) sum[k / V][k % V] = 0;
#pragma unroll
  for (int i = kBack - 1; i >= 0; --i)
#pragma unroll
    for (int j = 0; j < kSpan; ++j) {
      i32 oy = square - i, ox = first + j - kBefore;
      bool real = inside(oy, i32(rows.y)) && inside(ox, width);
      float weight = float(a.alpha);
      if constexpr (kSame<I, none>) weight *= pool_weight(a, PoolTaps<K>(rows, oy), PoolTaps<K>(columns, ox));
      float v = real ? weight * to_lane<float>(dy[i][j]) : 0.0f;
#pragma unroll
      for (int y = 0; y < S && i * S + y < K; ++y)
#pragma unroll
        for (int k = 0; k < K; ++k) {
          int x = (j - kBefore) * S - P + k;
          if (x < 0 || x >= V) continue;
          if (kSame<I, none> || index[i][j] == (i * S + y) * K + k) sum[y][x] += v;
        }
    }

#pragma unroll
  for (int y = 0; y < S; ++y) {
    i32 row = square * S - i32(rows.first.base) + y;
    if (!inside(row, i32(rows.x))) continue;
    Vec<DX, V> out;
    pack(sum[y], out);
    store_vector(static_cast<DX*>(a.x.data) + plane(a.x) + (row * i32(a.x.strides[3]) + piece * V), out);
  }
}

}  // namespace tsr::dev
