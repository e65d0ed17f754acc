// SPDX-License-Identifier: Apache-2.0
// Running indices taken apart into coordinates.
#pragma once

#include "device/divide.cuh"

namespace tsr::dev {

// Cuts the lowest coordinate off a running index.
template <class N>
N cut(N& rest, const Divisor& size) {
  N above = divide(rest, size), here = rest - above * N(size.value);
  rest = above;
  return here;
}

}  // namespace tsr::dev
