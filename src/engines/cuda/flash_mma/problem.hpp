// SPDX-License-Identifier: Apache-2.0
// Which attention runs by products of warps, and in tiles of which shape.
#pragma once

#include "engines/attention/problem.hpp"
#include "engines/cuda/flash_mma/args.cuh"

namespace tsr::cuda {

// A node that the engine takes.
struct FlashMmaProblem {
  explicit FlashMmaProblem(const Region& r);

  attention::Problem p;
  attention::Sequences o;  // not given: nobody reads it
  bool changed;            // scores or weights are changed one by one
  bool folded;             // the factor of scores is part of the exponents
  dev::attention::Pages pages;
  int64_t depth() const;  // elements of rows of q and k, and of v, as multiplied
  int64_t columns() const;
  int64_t rows() const { return p.group * p.n.sq; }  // of a group of heads
};

// Tells kernels of their tiles, of which a group of heads has so many.
void fill_tiles(dev::attention::FlashMmaArgs& a, const attention::Problem& p, int64_t row_tiles, const Device& d);

// Why not, if not.
Reason check_flash_mma(const Region& r, const Device& d);

// Rows of a tile, keys of a step, warps of a block, and blocks of a multiprocessor.
struct FlashMmaChoice {
  int rows, keys, warps;
  int blocks = 0;
  int parts() const { return rows / (dev::attention::kWarpRows * warps); }  // of 16 rows that a warp has
};
// Those that fit.
std::vector<FlashMmaChoice> flash_mma_choices(const FlashMmaProblem& m, const Device& d);
double flash_mma_seconds(const FlashMmaProblem& m, const FlashMmaChoice& c, const Region& r, const Device& d);
int64_t flash_mma_bytes(const FlashMmaProblem& m, const FlashMmaChoice& c);
int64_t flash_mma_row_tiles(const FlashMmaProblem& m, const FlashMmaChoice& c);  // of a group of heads

}  // namespace tsr::cuda
