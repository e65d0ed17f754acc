// SPDX-License-Identifier: Apache-2.0
// Sums in registers become gradients in memory. As products leave them, four sums of a thread are two neighbours of a
// row, and two of the row eight further down; eight rows have 32 lanes, four for each.
#pragma once

#include "engines/cuda/flash_back/args.cuh"
#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

// Where a gradient goes: rows are steps of one head of a batch.
struct Result {
  const Sequences& to;
  Place at;
  i32 head, end, length;  // steps before `end` are written
  i32 width;              // a multiple of 8
  bool whole;             // eight neighbours leave at once
  float factor;
};
inline Result result_of(const Sequences& to, i32 b, i32 head, i32 end, i32 length, i32 width, bool whole,
                        float factor) {
  return {to, {b * to.strides[0], i32(to.steps), b, false}, head, end, length, width, whole, factor};
}

// Eight neighbours of a row.
template <class TO>
void store_eight(const Result& r, i32 step, i32 column, const float (&x)[8]) {
  if (step >= r.end || column >= r.width || !holds(r.to, r.at, step, r.length)) return;
  TO* y = static_cast<TO*>(r.to.data) + row_offset(r.to, r.at, r.head, step) + column * r.to.strides[3];
  Vec<TO, 8> v;
#pragma unroll
  for (int i = 0; i < 8; ++i) v.v[i] = from_lane<TO>(x[i] * r.factor);
  if (r.whole)
    store_vector(y, v);
  else
    store_each(y, r.to.strides[3], v);
}

// Sums of 32 columns from `column` on, in two rows: four lanes exchange theirs, so that each has eight neighbours.
template <class TO>
void store_columns(const Result& r, i32 step, i32 column, const Vec<float, 4> (&fours)[4]) {
  int lane = threadIdx.x % 4;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float x[8];
#pragma unroll
    for (int other = 0; other < 4; ++other) {
      // What the lane `other` further has of my columns, for what I have of its.
      int from = lane ^ other;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float mine = fours[0].v[2 * row + e];
#pragma unroll
        for (int k = 1; k < 4; ++k) mine = from == k ? fours[k].v[2 * row + e] : mine;
        float theirs = other ? __shfl_xor_sync(0xffffffffu, mine, other) : mine;
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (from == k) x[2 * k + e] = theirs;
      }
    }
    store_eight<TO>(r, step + 8 * row, column + 8 * lane, x);
  }
}

}  // namespace tsr::dev::attention
