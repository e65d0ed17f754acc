// SPDX-License-Identifier: Apache-2.0
// A matrix product or convolution as the copy engine can take it: rows, columns, inner dimension and batches, one axis
// each. The rows of a convolution are positions, and its right operand has a matrix for each tap of the window; of the
// gradient of a filter the inner dimension is positions, and its result has a matrix for each tap.
#pragma once

#include <optional>
#include <vector>

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
  int64_t filter_tap, filter_step[2];                   // where the filter has the first tap, and those after it
  int64_t out_step[2] = {1, 1}, out_first[2] = {0, 0};  // where positions lie in the result
  bool empty = false;                                   // no tap meets the positions: their sums are 0

  int64_t all_taps() const { return taps[0] * taps[1]; }
};

// What was found out about a region.
struct WgmmaProblem {
  NodeId anchor;
  Epilogue epilogue;  // what follows the product
  WgmmaOperand a, b;
  DType type = DType::bf16;  // of a; that of b is as wide
  DType sum = DType::f32;    // or i32
  int64_t rows = 1, columns = 1, depth = 1, batches = 1;
  int element_bytes() const { return info(type).bits / 8; }
  // Strides of the operands of what follows.
  struct Strides {
    int64_t row, column, batch;
    int64_t line = 0, picture = 0;  // of positions that are not one dimension in memory
  };
  std::vector<Strides> strides;
  // Of a convolution, instead of the strides of a, or of b for the gradient of a filter. A strided data gradient has
  // one for each kind of position that meets other taps.
  std::vector<WgmmaWindow> windows;
  bool scattered = false;        // positions are not one dimension in memory
  bool filter_gradient = false;  // its batches are taps
  int64_t taps() const { return windows.empty() ? 1 : windows[0].all_taps(); }
  int staged = -1;  // the operand that leaves by way of shared memory; -1: elements are stored one by one
};

// Nothing, and why, if the engine cannot take the region.
std::optional<WgmmaProblem> find_wgmma(const Region& r, Reason* why);

}  // namespace tsr::cuda
