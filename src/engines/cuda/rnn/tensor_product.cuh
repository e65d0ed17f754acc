// SPDX-License-Identifier: Apache-2.0
// Products of matrices of 16-bit floats on tensor cores, summed in f32: what a recurrent network multiplies for all
// steps at once. Pieces of 16 bytes come into shared memory while those before are multiplied.
#pragma once

#include "device/block.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"
#include "device/ptx/pieces.cuh"
#include "engines/cuda/rnn/args.cuh"

namespace tsr::dev {

constexpr int kSide = kRnnTensorTile, kDepth = 64, kStages = kRnnTensorStages;
constexpr int kPiece = 8;  // elements of 16 bytes

// One operand's part of a tile: `kSide` rows or columns by `kDepth` of the inner dimension. ALONG: elements lie side by
// side along the inner dimension, in lines for each row; otherwise the lines are those of the inner dimension. Pieces
// of neighbouring lines are exchanged, so that lines read together lie in different banks.
template <class T, bool ALONG>
struct TileOperand {
  static constexpr int kLines = ALONG ? kSide : kDepth, kPieces = (ALONG ? kDepth : kSide) / kPiece;
  static constexpr int kElements = kSide * kDepth;

  static int place(int line, int piece) { return (line * kPieces + (piece ^ line % 8)) * kPiece; }

  static int clamp(i64 n, int most) { return n < 0 ? 0 : n > most ? most : int(n); }

  // `stride`: elements from line to line; `lines` and `length`: how many lines there are, and elements in each.
  static void load(T* to, const T* from, i64 stride, i64 line, i64 lines, i64 first, i64 length) {
    bool aligned = (reinterpret_cast<unsigned long long>(from) | u64(stride) * sizeof(T)) % 16 == 0;
    const T* begin = from + line * stride + first;
    int here = clamp(lines - line, kLines), width = clamp(length - first, kPieces * kPiece);
#pragma unroll 1
    for (int e = 0; e < kLines * kPieces / kRnnThreads; ++e) {
      int at = threadIdx.x + e * kRnnThreads, l = at / kPieces, p = at % kPieces;
      int left = l < here ? width - p * kPiece : 0, count = left < 0 ? 0 : left > kPiece ? kPiece : left;
      const T* piece = count > 0 ? begin + l * stride + p * kPiece : from;
      T* place_of = to + place(l, p);
      if (aligned) {
        piece_load<16>(place_of, piece, count * int(sizeof(T)));
      } else {
#pragma unroll 1
        for (int i = 0; i < kPiece; ++i) place_of[i] = i < count ? piece[i] : T{};
      }
    }
  }

  // Two matrices of 8 x 8 side by side along the inner dimension, of two groups of 8 rows: those from `row` on, at
  // `depth` of the inner dimension. Registers count rows first (a left operand) or the inner dimension first.
  template <bool ROWS_FIRST>
  static void fragment(u32 (&r)[4], const T* tile, int row, int depth) {
    int lane = threadIdx.x % 32, inner = lane / 8, group = ROWS_FIRST ? inner % 2 : inner / 2;
    int part = ROWS_FIRST ? inner / 2 : inner % 2;
    if constexpr (ALONG)
      matrix_load<false>(r, tile + place(row + group * 8 + lane % 8, depth / kPiece + part));
    else
      matrix_load<true>(r, tile + place(depth + part * 8 + lane % 8, row / kPiece + group));
  }
};

// 2 x 4 warps, 64 x 32 results each.
template <class T, bool A_ALONG, bool B_ALONG>
void rnn_tensor_product(const RnnProductArgs& a) {
  using A = TileOperand<T, A_ALONG>;
  using B = TileOperand<T, B_ALONG>;
  T* memory = reinterpret_cast<T*>(shared_memory());
  u32 columns = u32((a.n + kSide - 1) / kSide), tile = blockIdx.x / u32(a.splits), split = blockIdx.x % u32(a.splits);
  i64 m = i64(tile / columns) * kSide, n = i64(tile % columns) * kSide;
  // Pieces of the inner dimension: all blocks have as many, but for the last.
  i64 all = (a.k + kDepth - 1) / kDepth, each = (all + a.splits - 1) / a.splits, first = split * each;
  int count = int(first + each < all ? each : all - first);
  auto load = [&](int stage, int piece) {
    T* to = memory + stage * (A::kElements + B::kElements);
    if (piece < count) {
      i64 k = (first + piece) * kDepth;
      const T *left = static_cast<const T*>(a.a), *right = static_cast<const T*>(a.b);
      if constexpr (A_ALONG)
        A::load(to, left, a.a_m, m, a.m, k, a.k);
      else
        A::load(to, left, a.a_k, k, a.k, m, a.m);
      if constexpr (B_ALONG)
        B::load(to + A::kElements, right, a.b_n, n, a.n, k, a.k);
      else
        B::load(to + A::kElements, right, a.b_k, k, a.k, n, a.n);
    }
    pieces_commit();
  };
  int warp = threadIdx.x / 32, row = warp / 4 * 64, column = warp % 4 * 32;
  float sums[4][4][4] = {};
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) load(s, s);
  int stage = 0;
  for (int piece = 0; piece < count; ++piece) {
    pieces_wait<kStages - 2>();
    __syncthreads();
    load((stage + kStages - 1) % kStages, piece + kStages - 1);
    const T *left = memory + stage * (A::kElements + B::kElements), *right = left + A::kElements;
#pragma unroll 2
    for (int d = 0; d < kDepth; d += 16) {
      u32 x[4][4], y[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) A::template fragment<true>(x[i], left, row + i * 16, d);
#pragma unroll
      for (int j = 0; j < 2; ++j) B::template fragment<false>(y[j], right, column + j * 16, d);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          u32 b[2] = {y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]};
          mma<T>(sums[i][j], x[i], b);
        }
    }
    stage = (stage + 1) % kStages;
  }
  bool parts = a.splits > 1;
  float* to = static_cast<float*>(parts ? a.parts : a.c) + (parts ? split * a.m * a.n : 0);
  i64 stride = parts ? a.n : a.c_m;
  bool add = a.add && !parts;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      i64 r = m + row + i * 16 + lane / 4 + e / 2 * 8;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i64 q = n + column + j * 8 + lane % 4 * 2 + e % 2;
        if (r >= a.m || q >= a.n) continue;
        float& c = to[r * stride + q];
        c = add ? c + sums[i][j][e] : sums[i][j][e];
      }
    }
}

inline void rnn_add_parts(const RnnProductArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x, elements = a.m * a.n;
  if (index >= elements) return;
  const float* part = static_cast<const float*>(a.parts) + index;
  float sum = part[0];
  for (i64 s = 1; s < a.splits; ++s) sum += part[s * elements];
  float& c = static_cast<float*>(a.c)[index / a.n * a.c_m + index % a.n];
  c = a.add ? c + sum : sum;
}

}  // namespace tsr::dev
