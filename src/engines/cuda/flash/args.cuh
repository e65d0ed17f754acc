// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention on tensor cores.
#pragma once

#include "device/tensor_map.cuh"
#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

// How copies find a sequence.
struct FlashSource {
  TensorMap map;    // dimensions: elements of a row, steps, heads, batches; of packed sequences all steps are one batch
  i64 packed_rows;  // rows for each unit of the offsets; 0: not packed
  i32 heads, batches;  // 0: all have the same, else 1
  i32 box_steps;       // steps that a copy brings
};

constexpr int kTurnThreads = 256;  // of a block that turns values

struct FlashArgs : ScoreArgs {
  FlashSource q_from, k_from, v_from, o_to;
  // Blocks of a cluster have the same keys: neighbouring heads, or neighbouring tiles of rows; the other number is 1.
  i32 heads_each, rows_each;
  i32 row_tiles;  // of the queries of one head, each a cluster's; of packed ones nobody knows
  i32 together;   // heads whose tiles are walked together, so that their keys stay in the cache, each a cluster's
  // --- 8-bit numbers
  u8* turned;            // values, [b, hv, dv, turned_keys]: the workspace
  i32 turned_keys;       // a multiple of 16
  Numbers scale_o;       // of results
  u32 *amax_s, *amax_o;  // f32 as bits, which are in the same order; null: nobody wants them
};

}  // namespace tsr::dev::attention
