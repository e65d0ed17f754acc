// SPDX-License-Identifier: Apache-2.0
// Prints score_mod and its gradient as a struct `Modifier` that the kernels call for each score. The text depends on
// types and operations only; numbers travel with the launch.
#pragma once

#include "engines/attention/score_mod.hpp"
#include "engines/cuda/attention/arguments.hpp"

namespace tsr::cuda {

// Why the sub-graphs of an attention node cannot be printed, if they cannot.
Reason check_score_text(const Graph& g, const Node& n);
// Captured tensors and numbers become arguments.
std::string score_text(const Graph& g, const Node& n, Arguments& arguments);

}  // namespace tsr::cuda
