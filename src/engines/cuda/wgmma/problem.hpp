// SPDX-License-Identifier: Apache-2.0
// A matrix product or convolution as the copy engine can take it: rows, columns, inner dimension and batches, one axis
// each. The rows of a convolution are positions, and its right operand has a matrix for each tap of the window; of the
// gradient of a filter the inner dimension is positions, and its result has a matrix for each tap. Groups are batches.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engines/cuda/products/layout.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::cuda {

struct WgmmaOperand {
  TensorId tensor = kNone;
  // Strides: from row to row (or column), along the inner dimension, from batch to batch.
  int64_t step = 0, inner = 0, batch = 0;
  int64_t batches = 1;  // of its own
  bool across() const { return inner != 1; }
};

// What computes an operand, some elements at once.
struct WgmmaComputed {
  Prologue prologue;
  std::vector<ComputedStrides> strides;  // by operand of the prologue
  std::vector<OperandPlan::Access> access;
  int vector = 1;
  bool across = false;
  TensorBox raw;  // the largest tensor that it is computed of, but for what comes at once
  int bits() const { return info(prologue.lead().type).bits; }
};

// Pictures that a window walks over, dimensions in the order columns, rows, layers, pictures. Those that a convolution
// does not have are of size 1.
struct WgmmaWindow {
  std::array<int64_t, 4> positions{1, 1, 1, 1};
  std::array<int64_t, 3> first{}, taps{1, 1, 1}, apart{1, 1, 1};
  int64_t filter_tap = 0;
  std::array<int64_t, 3> filter_step{};  // where the filter has the first tap, and those after it
  std::array<int64_t, 3> out_step{1, 1, 1}, out_first{0, 0, 0};  // where positions lie in the result
  bool empty = false;                                            // no tap meets the positions: their sums are 0

  int64_t all_taps() const { return taps[0] * taps[1] * taps[2]; }
};

// What was found out about a region.
struct WgmmaProblem {
  NodeId anchor;
  Epilogue epilogue;  // what follows the product
  Reduction reduction{};
  WgmmaOperand a, b;
  // The right operand of a second product with the same left one, which lies as b does; kNone: there is one product.
  TensorId b_too = kNone;
  bool is_paired() const { return b_too != kNone; }
  std::array<std::optional<WgmmaComputed>, 2> computed{};  // a and b; nothing: they lie in memory
  bool has_prologue() const { return computed[0] || computed[1]; }
  DType type = DType::bf16;  // of a; that of b is as wide
  DType sum = DType::f32;    // or i32
  bool promotes = false;     // sums of 8-bit floats leave the tensor cores every 128 terms
  int64_t rows = 1, columns = 1, depth = 1, batches = 1;
  int element_bytes() const { return info(type).bits / 8; }
  // Strides of the operands of what follows.
  struct Strides {
    int64_t row, column, batch;
    std::array<int64_t, 4> positions{};
    bool is_fixed() const { return row == 0 && positions == std::array<int64_t, 4>{}; }  // for every row the same
  };
  std::vector<Strides> strides;
  // Of a convolution. A strided data gradient has a window for each kind of position that meets other taps.
  std::vector<WgmmaWindow> windows;
  TensorBox pictures;  // what windows walk over: a, or b for the gradient of a filter
  // Neighbouring positions that boxes hold, 64; or the copy engine's own windows, one position after the other.
  bool in_patches = false;
  std::array<int64_t, 4> patch{};
  TensorBox results;             // of the gradient of a filter in patches: a
  bool filter_gradient = false;  // its batches are taps of groups
  int64_t group_taps = 0;        // from one group's filters to the next, in taps
  int64_t taps() const { return windows.empty() ? 1 : windows[0].all_taps(); }
  int staged = -1;  // the operand that leaves by way of shared memory; -1: elements are stored one by one
};

// Nothing, and why, if the engine cannot take the region.
std::optional<WgmmaProblem> find_wgmma(const Region& r, const Device& d, Reason* why);

}  // namespace tsr::cuda
