// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention forward by products of warps.
#pragma once

#include "engines/cuda/scores/grouped_args.cuh"

namespace tsr::dev::attention {

constexpr int kFlashStages = 2;  // steps along the keys that are in shared memory

struct FlashMmaArgs : GroupedArgs {
  i32 together;  // groups of heads whose tiles are walked together, so that their keys stay in the cache
  bool o_whole;  // eight elements of a row leave at once
};

}  // namespace tsr::dev::attention
