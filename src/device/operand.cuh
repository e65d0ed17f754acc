// SPDX-License-Identifier: Apache-2.0
// A tensor of any strides in the arguments of a kernel. Scalars that are host memory at the launch travel inside.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct Operand {
  void* data;             // null: `value` holds the one element, or the tensor is absent
  u64 value;              // its bits
  i64 strides[kMaxAxes];  // in elements
};

}  // namespace tsr::dev
