// SPDX-License-Identifier: Apache-2.0
// A tensor as kernels that take any strides see it.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct TensorArg {
  void* data;
  i64 sizes[kMaxAxes];
  i64 strides[kMaxAxes];  // in elements
};

}  // namespace tsr::dev
