// SPDX-License-Identifier: Apache-2.0
// Gather: a thread for each element of the result.
#pragma once

#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/special/gather_args.cuh"

namespace tsr::dev {

template <class L, class X, class Y>
void gather(const GatherArgs& a) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x, x = 0, index = 0, y = 0;
  if (rest >= a.elements) return;
  for (int d = a.axes - 1; d >= 0; --d) {
    i64 i = cut(rest, a.sizes[d]);
    x += i * a.at_x[d];
    index += i * a.at_index[d];
    y += i * a.at_y[d];
  }
  i64 row = read_integer(a.index, a.index_bytes, index);
  bool real = row >= 0 && row < a.rows;
  write<Y>(a.y, y, real ? read<L, X>(a.x, x + row * a.row_stride) : L(0));
}

}  // namespace tsr::dev
