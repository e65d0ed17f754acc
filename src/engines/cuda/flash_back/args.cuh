// SPDX-License-Identifier: Apache-2.0
// What host and device share of the gradients of attention on tensor cores.
#pragma once

#include "device/tensor_map.cuh"
#include "engines/cuda/scores/gradient_args.cuh"

namespace tsr::dev::attention {

struct BackArgs : ScoreArgs, GradientArgs {
  TensorMap q_map, k_map, v_map, do_map;  // dimensions: elements of a row, steps, heads, batches
  i32 splits;                             // blocks that share the heads of q of the same keys
  i32 tile_blocks;                        // blocks of the same keys in all heads, where they come together; else 0
  // --- workspace: of every head of q as many rows as its tiles have
  float* dq_sums;  // in the order of registers, see each_columns()
  u32* turns;      // additions to each part of dq so far, where their order is fixed
  // The gradient of a bias: f32 of its sizes, row by row, and their strides, 0 where it repeats; where it goes.
  float* bias_sums;
  i64 bias_count, bias_strides[4];
  Sequences dbias, amax_dp;
  u32* largest;  // magnitude of a score's gradient, but for the scale; as bits, which are in the same order
  // dk and dv of each split, in the order of registers: [b, hk, key_tiles, splits, 2, 128 keys]
  float* key_parts;
};

constexpr int kBackKeys = 128, kWideKeys = 64;  // of a block; the second where rows are long

}  // namespace tsr::dev::attention
