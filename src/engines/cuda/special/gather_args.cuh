// SPDX-License-Identifier: Apache-2.0
// Arguments of gather: the loops over y, with the step of each in all tensors.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

struct GatherArgs {
  Operand x, index, y;
  int index_bytes;  // of an element
  int axes;
  Divisor sizes[kMaxAxes];
  i64 at_x[kMaxAxes], at_index[kMaxAxes], at_y[kMaxAxes];
  i64 rows, row_stride;  // of x along the axis
  i64 elements;
  void* workspace;
};

}  // namespace tsr::dev
