// SPDX-License-Identifier: Apache-2.0
// Products of matrices of any strides, tile by tile, and sums of columns.
#pragma once

#include "device/block.cuh"
#include "engines/cuda/rnn/args.cuh"

namespace tsr::dev {

constexpr int kTile = 64, kTileDepth = 16, kTilePitch = kTile + 4;

// Brings one side of a tile to shared memory, [depth][kTilePitch]; threads follow the side's smaller stride.
template <class L>
void load_tile(const L* from, i64 stride, i64 depth_stride, i64 first, i64 size, i64 k, i64 depth, L* to) {
  bool along_depth = depth_stride < stride;
#pragma unroll
  for (int e = 0; e < kTile * kTileDepth / kRnnThreads; ++e) {
    int at = threadIdx.x + e * kRnnThreads;
    int i = along_depth ? at / kTileDepth : at % kTile, d = along_depth ? at % kTileDepth : at / kTile;
    bool inside = first + i < size && k + d < depth;
    to[d * kTilePitch + i] = inside ? from[(first + i) * stride + (k + d) * depth_stride] : L(0);
  }
}

// 16 x 16 threads, 4 x 4 results each.
template <class L>
void rnn_product(const RnnProductArgs& a) {
  L *left = reinterpret_cast<L*>(shared_memory()), *right = left + kTileDepth * kTilePitch;
  u32 tiles = u32((a.n + kTile - 1) / kTile);
  i64 m = i64(blockIdx.x / tiles) * kTile, n = i64(blockIdx.x % tiles) * kTile;
  int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
  L sum[4][4] = {};
  for (i64 k = 0; k < a.k; k += kTileDepth) {
    load_tile(static_cast<const L*>(a.a), a.a_m, a.a_k, m, a.m, k, a.k, left);
    load_tile(static_cast<const L*>(a.b), a.b_n, a.b_k, n, a.n, k, a.k, right);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kTileDepth; ++d) {
      L x[4], y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = left[d * kTilePitch + row + i], y[i] = right[d * kTilePitch + column + i];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (m + row + i >= a.m || n + column + j >= a.n) continue;
      L& c = static_cast<L*>(a.c)[(m + row + i) * a.c_m + n + column + j];
      c = a.add ? c + sum[i][j] : sum[i][j];
    }
}

// A block sums 32 columns, its warps share the rows. Several loads of a lane are under way at a time.
template <class L, class S>
void rnn_sum(const RnnSumArgs& a) {
  L* parts = reinterpret_cast<L*>(shared_memory());
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  i64 column = i64(blockIdx.x) * 32 + lane;
  L sum = 0;
  if (column < a.columns) {
    const S* from = static_cast<const S*>(a.rows) + column;
#pragma unroll 8
    for (i64 r = warp; r < a.count; r += kRnnWarps) sum += to_lane<L>(from[r * a.stride]);
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || column >= a.columns) return;
  for (int w = 1; w < kRnnWarps; ++w) sum += parts[w * 32 + lane];
  if (a.sums) static_cast<L*>(a.sums)[column] = sum;
  if (a.also && column < a.also_columns) static_cast<L*>(a.also)[column] = sum;
}

}  // namespace tsr::dev
