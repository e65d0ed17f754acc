// SPDX-License-Identifier: Apache-2.0
// Running sums: a block for each row where the elements of a row are neighbours, otherwise a thread for each.
#pragma once

#include "device/block.cuh"
#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/special/cumsum_args.cuh"

namespace tsr::dev {

struct RowPlace {
  i64 x, y;
};
inline RowPlace row_place(const CumsumArgs& a, i64 row) {
  RowPlace p{a.first_x, a.first_y};
  for (int d = a.axes - 1; d >= 0; --d) {
    i64 i = cut(row, a.sizes[d]);
    p.x += i * a.at_x[d];
    p.y += i * a.at_y[d];
  }
  return p;
}

template <class L, class X, class Y>
void cumsum_by_threads(const CumsumArgs& a) {
  i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= a.rows) return;
  RowPlace p = row_place(a, row);
  L sum = 0;
  for (i64 i = 0; i < a.length; ++i) {
    L before = sum;
    sum += read<L, X>(a.x, p.x + i * a.step_x);
    write<Y>(a.y, p.y + i * a.step_y, a.exclusive ? before : sum);
  }
}

template <class L, class X, class Y, int THREADS>
void cumsum_by_blocks(const CumsumArgs& a) {
  RowPlace p = row_place(a, blockIdx.x);
  L *sums = reinterpret_cast<L*>(shared_memory()), carry = 0;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (i64 base = 0; base < a.length; base += THREADS) {
    i64 i = base + threadIdx.x;
    L mine = i < a.length ? read<L, X>(a.x, p.x + i * a.step_x) : L(0), sum = mine;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
      L other = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    // What lies before this thread's element: a difference would lose what is not finite.
    L left = __shfl_up_sync(0xffffffffu, sum, 1);
    if (lane == 0) left = 0;
    __syncthreads();
    L before = carry;
    for (int w = 0; w < THREADS / 32; ++w) {
      if (w < warp) before += sums[w];
      carry += sums[w];
    }
    if (i < a.length) write<Y>(a.y, p.y + i * a.step_y, a.exclusive ? before + left : before + sum);
    __syncthreads();  // the sums are used again
  }
}

}  // namespace tsr::dev
