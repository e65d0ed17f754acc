// SPDX-License-Identifier: Apache-2.0
// A matrix product of few rows, as thin.cuh takes it: rows, columns and the inner dimension, one axis each. Where the
// graph has few columns instead, they are the rows here.
#pragma once

#include <optional>
#include <vector>

#include "engines/cuda/products/layout.hpp"

namespace tsr::cuda {

// What computes the elements of columns.
struct ThinComputed {
  Prologue prologue;
  std::vector<ComputedStrides> strides;  // by operand of the prologue
  std::vector<OperandPlan::Access> access;
};

struct ThinProblem {
  Epilogue epilogue;                     // what follows the product
  std::optional<ThinComputed> computed;  // nothing: columns lie in memory
  DType type;                            // that is multiplied
  TensorId rows, columns;                // what is read of memory; of columns, where they are computed, the most
  int64_t row_count = 1, column_count = 1, depth = 1;
  int64_t row_pitch = 0, column_pitch = 0;  // bytes
  int bits = 16;                            // of an element of a column
  struct Strides {
    int64_t row, column;
  };
  std::vector<Strides> strides;  // of the operands of what follows

  int row_blocks() const;                          // of eight rows; products of 1, 2 and 4 share a kernel
  int64_t elements() const { return 128 / bits; }  // of a column that a thread reads at a time
};

// Blocks of a cluster share the inner dimension.
struct ThinChoice {
  int cluster;
  double seconds;
};
int64_t steps_of(const ThinProblem& m, const ThinChoice& c);
int64_t shared_bytes_of(const ThinProblem& m, const ThinChoice& c);
int64_t blocks_of(const ThinProblem& m, const ThinChoice& c, const Device& d);
std::vector<ThinChoice> choices_of(const ThinProblem& m, const Region& r, const Device& d);  // best first

// Nothing, and why, if the engine cannot take the region.
std::optional<ThinProblem> find_thin(const Region& r, const Device& d, Reason* why);

}  // namespace tsr::cuda
