// SPDX-License-Identifier: Apache-2.0
// Tiles whose rows are the queries of all heads that share keys: which sequences their copies can bring.
#pragma once

#include "engines/attention/problem.hpp"
#include "engines/cuda/scores/grouped_args.cuh"

namespace tsr::cuda {

// Why copies of 16 bytes cannot bring rows of a sequence, if they cannot.
Reason check_pieces(const Graph& g, const attention::Sequences& x, const char* name);

dev::attention::Pages pages_of(const attention::Problem& p);

}  // namespace tsr::cuda
