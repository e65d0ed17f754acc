// SPDX-License-Identifier: Apache-2.0
// Products without tiles (direct.cuh).
#pragma once

#include "engines/cuda/products/problem.hpp"

namespace tsr::cuda {

// From the problem as its kind describes it: batches join the columns, and the side that lies narrower
// in the result becomes columns; operands stay.
Reason check_flat(const Graph& g, const Problem& p);
void flatten(const Graph& g, Problem& p, const Tensor& y);

}  // namespace tsr::cuda
