// SPDX-License-Identifier: Apache-2.0
// Copies between packed sequences and padded ones: what lies beyond a sequence reads as 0 and is not written.
#pragma once

#include "graph/op.hpp"
#include "planner/engine.hpp"

namespace tsr::cpu {

bool has_ragged(const Graph& g, const Node& n);
Reason check_ragged_copy(const Graph& g, const Node& n);
std::unique_ptr<Step> make_ragged_copy(const Graph& g, const Node& n, int threads);

}  // namespace tsr::cpu
