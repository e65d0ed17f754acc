// SPDX-License-Identifier: Apache-2.0
// Arguments of reductions by a sub-graph.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

constexpr int kMaxCombineNumbers = 32, kMaxCombineCaptures = 8;

struct ReduceByArgs {
  Operand x, y;
  Operand captures[kMaxCombineCaptures];  // of one element each
  double numbers[kMaxCombineNumbers];
  // Axes of x, row-major: those that stay, and those that are reduced; size 1 where there are fewer.
  Divisor kept[kMaxAxes], reduced[kMaxAxes];
  i64 kept_x[kMaxAxes], kept_y[kMaxAxes], reduced_x[kMaxAxes];  // strides
  int kept_axes, reduced_axes;
  i64 rows, length;
  double init;
  void* workspace;
};

}  // namespace tsr::dev
