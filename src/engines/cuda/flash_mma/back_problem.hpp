// SPDX-License-Identifier: Apache-2.0
// Which gradients of attention run by products of warps, and in tiles of which shape.
#pragma once

#include "engines/cuda/flash_mma/back_args.cuh"
#include "engines/cuda/scores/gradients.hpp"

namespace tsr::cuda {

// Steps of the kernels, as the device has room for them.
struct FlashMmaBackShape {
  int64_t depth, columns;  // elements of rows of q and k, and of v, as multiplied
  // --- dq
  int query_warps = 0, keys = 0;  // of a block, and of a step; each warp has 16 queries
  int query_blocks = 0;           // of a multiprocessor; 0: none fit
  // --- dk and dv
  bool both = true;                         // in one kernel; otherwise one after the other
  int key_warps = 0, rows = 0, stages = 0;  // of a block, queries of a step, and steps in shared memory
  int key_blocks = 0;
  int64_t query_rows() const { return int64_t{dev::attention::kWarpRows} * query_warps; }
  int64_t key_rows() const { return int64_t{dev::attention::kWarpRows} * key_warps; }
  int64_t query_bytes() const;  // shared memory of a block
  int64_t key_bytes() const;
};
FlashMmaBackShape flash_mma_back_shape(const attention::Problem& p, const Device& d);

// Why not, if not.
Reason check_flash_mma_back(const Region& r, const Device& d);
double flash_mma_back_seconds(const Region& r, const Device& d);

}  // namespace tsr::cuda
