// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling with windows of K x K elements, S x S elements from each other, where channels lie side by
// side: a thread takes the S x S elements of dx with which a window begins, of V channels. The windows that hold one of
// them are this one and those before it, so that all loads stand before the sums and none has a condition.
#pragma once

#include "engines/cuda/resample/pool.cuh"

namespace tsr::dev {

// I is `none` unless the maximum decides.
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
  Vec<typename Either<kSame<I, none>, u8, I>::type, V> index[kBack][kBack];
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

}  // namespace tsr::dev
