// SPDX-License-Identifier: Apache-2.0
// Products of attention by warps, of operands in shared memory whose rows are an odd number of 16 bytes apart: the
// eight of a matrix then lie in different banks. A warp has M times 16 rows of the result.
#pragma once

#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"

namespace tsr::dev::attention {

// Rows of 16-bit elements: bytes from one to the next.
template <int WIDTH>
constexpr int kPitch = WIDTH * 2 + 16;

// Adds rows times the columns that the rows of another matrix are (queries times keys): both lie along the inner
// dimension.
template <class T, int DEPTH, int M, int N>
void multiply_rows(const char* rows, const char* columns, float (&s)[M][N]) {
  int lane = threadIdx.x % 32;
  rows += lane % 16 * kPitch<DEPTH> + lane / 16 * 16;
  columns += (lane % 8 + lane / 16 * 8) * kPitch<DEPTH> + lane / 8 % 2 * 16;
#pragma unroll(M == 1 ? DEPTH / 16 : 2)  // more would be loaded ahead than registers hold
  for (int k = 0; k < DEPTH / 16; ++k) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) matrix_load(a[m], rows + m * 16 * kPitch<DEPTH> + k * 32);
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      u32 b[4];
      matrix_load(b, columns + j * 16 * kPitch<DEPTH> + k * 32);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          mma<T>(reinterpret_cast<float(&)[4]>(s[m][8 * j + 4 * h]), a[m], {b[2 * h], b[2 * h + 1]});
    }
  }
}

// Adds weights in registers times rows of COLUMNS elements (weights times values), which lie across the inner
// dimension.
template <class T, int COLUMNS, int M, int N>
void add_rows(const u32 (&p)[M][N][4], const char* rows, float (&o)[M][COLUMNS / 2]) {
  int lane = threadIdx.x % 32;
  rows += lane % 16 * kPitch<COLUMNS> + lane / 16 * 16;
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int c = 0; c < COLUMNS / 16; ++c) {
      u32 b[4];
      matrix_load<true>(b, rows + j * 16 * kPitch<COLUMNS> + c * 32);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          mma<T>(reinterpret_cast<float(&)[4]>(o[m][8 * c + 4 * h]), p[m][j], {b[2 * h], b[2 * h + 1]});
    }
}

}  // namespace tsr::dev::attention
