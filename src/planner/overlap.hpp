// SPDX-License-Identifier: Apache-2.0
// How the memory of two tensors lies to each other.
#pragma once

#include "graph/graph.hpp"

namespace tsr {

enum class Overlap : uint8_t {
  none,    // no byte in common
  same,    // each element of one lies where that of the other with the same index lies
  partly,  // anything else
};
Overlap overlap(const Tensor& a, const void* a_data, const Tensor& b, const void* b_data);

}  // namespace tsr
