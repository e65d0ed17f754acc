// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention with few queries.
#pragma once

#include "engines/cuda/scores/grouped_args.cuh"

namespace tsr::dev::attention {

constexpr int kDecodeWarps = 4, kDecodeThreads = 32 * kDecodeWarps;
constexpr int kDecodeFixed = 576;  // bytes of shared memory beside queries, keys and values

struct DecodeArgs : GroupedArgs {
  i32 splits;  // of the keys
  // --- workspace: what each split found, [b, groups, splits, rows of a group]
  float *part_o, *part_max, *part_sum;
};

}  // namespace tsr::dev::attention
