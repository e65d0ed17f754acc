// SPDX-License-Identifier: Apache-2.0
// Prints what an attention node asks for as a struct `Options`: what the kernels would otherwise ask for each score,
// and the code of score_mod and its gradient. The text depends on types and operations only; numbers travel with the
// launch.
#pragma once

#include "engines/attention/score_mod.hpp"
#include "engines/cuda/attention/arguments.hpp"

namespace tsr::cuda {

// Why the sub-graphs of an attention node cannot be printed, if they cannot.
Reason check_options(const Graph& g, const Node& n);
// Captured tensors and numbers become arguments.
std::string options_text(const Graph& g, const Node& n, const attention::Problem& p, Arguments& arguments);

}  // namespace tsr::cuda
