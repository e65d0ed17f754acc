// SPDX-License-Identifier: Apache-2.0
// A matrix product or convolution as the copy engine can take it: rows, columns, inner dimension and batches, one axis
// each. The rows of a convolution are positions, and its right operand has a matrix for each tap of the window.
#pragma once

#include <optional>

#include "engines/cuda/toolkit/epilogue.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {

struct WgmmaOperand {
  TensorId tensor = kNone;
  // Strides: from row to row (or column), along the inner dimension, from batch to batch.
  int64_t step = 0, inner = 0, batch = 0;
  int64_t batches = 1;  // of its own
  bool across() const { return inner != 1; }
};

// Pictures that a window walks over: columns first, then rows.
struct WgmmaWindow {
  TensorBox pictures;  // but for the pixels of a copy
  int64_t positions[2], taps[2], apart[2];
  bool backwards;  // the filter's last tap meets the first element
};

// What was found out about a region.
struct WgmmaProblem {
  NodeId anchor;
  Epilogue epilogue;  // what follows the product
  WgmmaOperand a, b;
  int64_t rows = 1, columns = 1, depth = 1, batches = 1;
  // Strides of the operands of what follows.
  struct Strides {
    int64_t row, column, batch;
  };
  std::vector<Strides> strides;
  std::optional<WgmmaWindow> window;  // instead of the strides of a
  int staged = -1;                    // the operand that boxes are stored to; -1: elements are stored one by one
};

// Nothing, and why, if the engine cannot take the region.
std::optional<WgmmaProblem> find_wgmma(const Region& r, Reason* why);

}  // namespace tsr::cuda
