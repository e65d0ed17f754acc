// SPDX-License-Identifier: Apache-2.0
// Joins what blocks found that shared the keys of a row, a warp for each row. (A count of the blocks that have
// finished, so that the last one joins, would have to be zero before the first begins. Nobody promises that of a
// workspace, and to clear it takes a launch, too.)
#pragma once

#include "engines/cuda/decode/results.cuh"

namespace tsr::dev::attention {

template <class T, class O>
void decode_join(const DecodeArgs& a) {
  i64 index = i64(blockIdx.x) * kDecodeWarps + threadIdx.x / 32;
  i32 rows = a.group * a.sq, groups = a.hq / a.group;
  i32 row = i32(index % rows), which = i32(index / rows), b = which / groups, head = which % groups * a.group;
  if (b >= a.b) return;
  ScoreFactors<float> f;
  // Only as soon as they are needed: registers are for parts under way.
  if constexpr (T::kFolded) read_score_factors<O>(a, f);
  float exponent = T::kFolded ? f.score * kLog2e : kLog2e;
  i32 length = grouped_queries(a, b);
  i64 first = part_index(a, b, head, 0, row);
  DecodeColumns sums[kDecodeVectors<T>] = {};
  auto part = [&](i32 split) { return first + i64(split) * rows; };
  Softmax<float> all = join_parts<T>(
      a, a.splits, exponent,
      [&](i32 p) {
        return Softmax<float>{a.part_max[part(p)], a.part_sum[part(p)]};
      },
      [&](i32 p) { return a.part_o + part(p) * a.dv; }, sums);
  if constexpr (!T::kFolded) read_score_factors<O>(a, f);
  store_row<T, O>(a, f, exponent, b, head + row % a.group, row / a.group, length, all, sums);
}

}  // namespace tsr::dev::attention
