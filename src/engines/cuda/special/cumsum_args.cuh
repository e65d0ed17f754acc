// SPDX-License-Identifier: Apache-2.0
// Arguments of running sums.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

struct CumsumArgs {
  Operand x, y;
  // Rows: all dimensions but the axis.
  int axes;
  Divisor sizes[kMaxAxes];
  i64 at_x[kMaxAxes], at_y[kMaxAxes];
  i64 rows, length;
  i64 first_x, first_y, step_x, step_y;  // along the axis, from its end where sums begin there
  bool exclusive;
  void* workspace;
};

}  // namespace tsr::dev
