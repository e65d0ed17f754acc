// SPDX-License-Identifier: Apache-2.0
// Arguments of local response and divisive normalisation. Dimensions are sorted, that of neighbouring memory last.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

constexpr int kNormAxes = 5;

struct LocalNormArgs {
  Operand x, mean, dy, out, dmean;  // out: y or dx
  Operand packed;                   // strides of what the workspace holds
  Divisor sizes[kNormAxes];
  i64 before[kNormAxes], after[kNormAxes];  // elements of the box around the centre, 0 where it does not extend
  i64 elements;
  double k, alpha, beta;  // alpha is divided by the number of elements of the box
  void* workspace;        // backward: s^-beta of every element, then what it pulls at its neighbours with
};

}  // namespace tsr::dev
