// SPDX-License-Identifier: Apache-2.0
// Arguments of top_k.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

struct TopKArgs {
  Operand x, values, indices;
  int indices_bytes;  // of an element; 0: nobody wants them
  // Rows: all dimensions but the axis.
  int axes;
  Divisor sizes[kMaxAxes];
  i64 at_x[kMaxAxes], at_values[kMaxAxes], at_indices[kMaxAxes];
  i64 rows, length, k;
  i64 step_x, step_values, step_indices;  // along the axis
  void* workspace;
};

}  // namespace tsr::dev
