// SPDX-License-Identifier: Apache-2.0
// Copies from or to packed sequences, element by element: steps that a source does not have read as 0, those that a
// target does not have are not written.
#pragma once

#include "engines/cuda/move/copy.cuh"

namespace tsr::dev {

// Where the element numbered `number` lies; false if its sequence does not reach that far.
inline bool find_element(const RaggedSide& s, i64 number, i64* at) {
  i64 batch = s.batch_start, time = s.time_start;
  *at = s.first;
  for (int l = s.loops - 1; l >= 0; --l) {
    i64 rest = number / s.size[l], index = number - rest * s.size[l];
    number = rest;
    if (l == s.batch_loop)
      batch += s.batch_scale * index;
    else
      *at += index * s.step[l];
    if (l == s.time_loop) time += s.time_scale * index;
  }
  *at += s.ragged.offsets ? ragged_start(s.ragged, batch) : batch * s.batch_step;
  return !s.ragged.offsets || time < ragged_steps(s.ragged, batch);
}

template <class From, class To>
void copy_ragged(const RaggedArgs& a) {
  i64 number = i64(blockIdx.x) * blockDim.x + threadIdx.x, from, to;
  if (number >= a.count || !find_element(a.to, number, &to)) return;
  From v = {};
  if (find_element(a.from, number, &from)) v = static_cast<const From*>(a.from.data)[from];
  static_cast<To*>(a.to.data)[to] = convert<To>(v);
}

}  // namespace tsr::dev
