// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention on tensor cores.
#pragma once

#include "device/tensor_map.cuh"
#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

struct FlashArgs : ScoreArgs {
  TensorMap q_map, k_map, v_map, o_map;  // dimensions: elements of a row, steps, heads, batches
  i32 row_tiles;                         // of the queries of one head
  i32 together;                          // heads whose tiles are walked together, so that their keys stay in the cache
};

}  // namespace tsr::dev::attention
