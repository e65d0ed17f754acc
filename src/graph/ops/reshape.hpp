// SPDX-License-Identifier: Apache-2.0
// Operands that are given with fewer dimensions than an operation has.
#pragma once

#include "graph/graph.hpp"

namespace tsr {

// x with dimensions of size 1 in front of dimension `at`. Its own first size follows when a plan is made for others.
TensorId with_ones(Graph& g, TensorId x, int at, int ones);

}  // namespace tsr
