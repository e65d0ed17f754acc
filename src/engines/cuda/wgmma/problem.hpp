// SPDX-License-Identifier: Apache-2.0
// A matrix product as the copy engine can take it: rows, columns, inner dimension and batches, one axis each.
#pragma once

#include <optional>

#include "engines/cuda/gemm/rest.hpp"

namespace tsr::cuda {

struct WgmmaOperand {
  TensorId tensor = kNone;
  int64_t step = 0, inner = 0,
          batch = 0;  // strides: from row to row (or column), along the inner dimension, of batches
  bool across() const { return inner != 1; }
};

// What was found out about a region.
struct WgmmaMatch {
  NodeId anchor;
  Rest rest;  // what follows the product
  WgmmaOperand a, b;
  int64_t rows = 1, columns = 1, depth = 1, batches = 1;
  // Strides of the operands of what follows.
  struct Strides {
    int64_t row, column, batch;
  };
  std::vector<Strides> strides;
  int staged = -1;  // the operand that boxes are stored to; -1: elements are stored one by one
};

// Nothing, and why, if the engine cannot take the region.
std::optional<WgmmaMatch> match_wgmma(const Region& r, Reason* why);

}  // namespace tsr::cuda
