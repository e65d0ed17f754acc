// SPDX-License-Identifier: Apache-2.0
// What kernels of attention's gradients on tensor cores know beside their scores, known to host and device.
#pragma once

#include "engines/cuda/scores/args.cuh"

namespace tsr::dev::attention {

struct GradientArgs {
  Operand grad_o;
  Sequences delta, grad_q, grad_k, grad_v, dsink;
  bool dq_whole, dk_whole, dv_whole;  // eight elements of a row leave at once
  i32 query_tiles, key_tiles;         // of one head
  // --- workspace: of every head of q as many rows as its tiles have
  float *row_stats, *row_delta;  // statistics as exponents of 2, +inf where nothing is attended to; sums of do o
};

constexpr int kAroundThreads = 256, kAroundShared = 64;  // bytes: one number for each warp

}  // namespace tsr::dev::attention
