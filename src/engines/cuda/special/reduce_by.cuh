// SPDX-License-Identifier: Apache-2.0
// Reductions by a sub-graph: a thread walks along each row. What combines an accumulator with an element need not
// combine two accumulators, so a row cannot be shared.
#pragma once

#include "device/cut.cuh"
#include "device/elements.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/special/reduce_by_args.cuh"

namespace tsr::dev {

template <class Combine, class L, class X, class Y>
void reduce_by(const ReduceByArgs& a) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x, at_x = 0, at_y = 0;
  if (rest >= a.rows) return;
  for (int d = a.kept_axes - 1; d >= 0; --d) {
    i64 i = cut(rest, a.kept[d]);
    at_x += i * a.kept_x[d];
    at_y += i * a.kept_y[d];
  }
  L accumulator = L(a.init);
  for (i64 k = 0; k < a.length; ++k) {
    i64 index = k, at = at_x;
    for (int d = a.reduced_axes - 1; d >= 0; --d) at += cut(index, a.reduced[d]) * a.reduced_x[d];
    accumulator = Combine::apply(a, accumulator, read<L, X>(a.x, at));
  }
  write<Y>(a.y, at_y, accumulator);
}

}  // namespace tsr::dev
