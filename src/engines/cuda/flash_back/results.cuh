// SPDX-License-Identifier: Apache-2.0
// Sums in registers become gradients in memory.
#pragma once

#include "engines/cuda/flash_back/args.cuh"
#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

// Two rows of two elements leave, times a factor: those of step `first` and eight further down.
template <class TO>
void store_four(const Sequences& to, const Place& at, bool pairs, i32 head, i32 first, i32 end, i32 length, i32 column,
                float factor, const Vec<float, 4>& x) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    i32 step = first + 8 * k;
    if (step >= end || !holds(to, at, step, length)) continue;
    TO* y = static_cast<TO*>(to.data) + row_offset(to, at, head, step) + column * to.strides[3];
    Vec<TO, 2> two = {from_lane<TO>(x.v[2 * k] * factor), from_lane<TO>(x.v[2 * k + 1] * factor)};
    if (pairs)
      store_vector(y, two);
    else
      store_each(y, to.strides[3], two);
  }
}

}  // namespace tsr::dev::attention
