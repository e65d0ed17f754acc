// SPDX-License-Identifier: Apache-2.0
// What host and device share of attention's gradients by products of warps.
#pragma once

#include "engines/cuda/flash_mma/args.cuh"
#include "engines/cuda/scores/gradient_args.cuh"

namespace tsr::dev::attention {

constexpr int kNumberRows = 64;  // queries whose numbers one block finds; steps of others are parts of these

struct FlashMmaBackArgs : FlashMmaArgs, GradientArgs {
  i32 tile_blocks;  // blocks of the same keys in all heads, where they come together; else 0
};

}  // namespace tsr::dev::attention
