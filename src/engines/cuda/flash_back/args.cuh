// SPDX-License-Identifier: Apache-2.0
// What host and device share of the gradients of attention on tensor cores.
#pragma once

#include "device/tensor_map.cuh"
#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

struct BackArgs : ScoreArgs {
  TensorMap q_map, k_map, v_map, do_map;  // dimensions: elements of a row, steps, heads, batches
  Sequences grad_o, delta, grad_q, grad_k, grad_v, dsink;
  bool dq_whole, dk_whole, dv_whole;  // eight elements of a row leave at once
  i32 row_tiles, key_tiles;           // of one head
  i32 splits;                         // blocks that share the heads of q of the same keys
  i32 tile_blocks;                    // blocks of the same keys in all heads, where they come together; else 0
  // --- workspace: of every head of q as many rows as its tiles have
  float *row_stats, *row_delta;  // statistics as exponents of 2, +inf where nothing is attended to; sums of do o
  float* dq_sums;                // in the order of registers, see each_columns()
  u32* turns;                    // additions to each part of dq so far, where their order is fixed
  // The gradient of a bias: f32 of its sizes, row by row, and their strides, 0 where it repeats; where it goes.
  float* bias_sums;
  i64 bias_count, bias_strides[4];
  Sequences dbias, amax_dp;
  u32* largest;  // magnitude of a score's gradient, but for the scale; as bits, which are in the same order
  // dk and dv of each split, in the order of registers: [b, hk, key_tiles, splits, 2, 128 keys]
  float* key_parts;
};

constexpr int kBackKeys = 128, kWideKeys = 64;           // of a block; the second where rows are long
constexpr int kAroundThreads = 256, kAroundShared = 64;  // bytes: one number for each warp

}  // namespace tsr::dev::attention
