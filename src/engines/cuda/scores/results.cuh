// SPDX-License-Identifier: Apache-2.0
// Sums in registers become rows in memory. As products leave them, four sums of a thread are two neighbours of a row,
// and two of the row eight further down; eight rows have 32 lanes, four for each.
#pragma once

#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

// Where a result goes: rows are steps of one head of a batch.
struct Result {
  const Sequences& to;
  Place at;
  i32 head, end, length;  // steps before `end` are written
  i32 width;              // a multiple of 8
  bool whole;             // eight neighbours leave at once
  float factor;
};
// Of one that is not packed.
inline Result result_of(const Sequences& to, i32 b, i32 head, i32 end, i32 length, i32 width, bool whole,
                        float factor) {
  return {to, {b * to.strides[0], i32(to.steps), b, false}, head, end, length, width, whole, factor};
}

// Eight neighbours of a row, `step` elements apart. WHOLE: they lie side by side.
template <class TO>
void store_eight(TO* y, i64 step, bool whole, float factor, const float (&x)[8]) {
  Vec<TO, 8> v;
#pragma unroll
  for (int i = 0; i < 8; ++i) v.v[i] = from_lane<TO>(x[i] * factor);
  if (whole)
    store_vector(y, v);
  else
    store_each(y, step, v);
}

// Sums of 32 columns in two rows: four lanes exchange theirs, so that each has the eight neighbours from column 8 (lane
// % 4) on. `store` gets them, row by row.
template <class Store>
void each_eight(const Vec<float, 4> (&fours)[4], const Store& store) {
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
    store(row, x);
  }
}

// Sums of 32 columns from `column` on, in two rows of one head.
template <class TO>
void store_columns(const Result& r, i32 step, i32 column, const Vec<float, 4> (&fours)[4]) {
  each_eight(fours, [&](int row, const float(&x)[8]) {
    i32 at = step + 8 * row, first = column + i32(threadIdx.x) % 4 * 8;
    if (at >= r.end || first >= r.width || !holds(r.to, r.at, at, r.length)) return;
    i64 offset = row_offset(r.to, r.at, r.head, at) + first * r.to.strides[3];
    store_eight(static_cast<TO*>(r.to.data) + offset, r.to.strides[3], r.whole, r.factor, x);
  });
}

// The sums of a thread's columns 32 i to 32 i + 31.
template <int N>
void take_fours(const float (&sums)[N], int i, Vec<float, 4> (&fours)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int e = 0; e < 4; ++e) fours[k].v[e] = sums[16 * i + 4 * k + e];
}

}  // namespace tsr::dev::attention
