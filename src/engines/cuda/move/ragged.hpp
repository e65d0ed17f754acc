// SPDX-License-Identifier: Apache-2.0
// Movements from or to packed sequences on a GPU.
#pragma once

#include <memory>

#include "planner/engine.hpp"

namespace tsr::cuda {

bool has_ragged(const Graph& g, const Node& n);
Reason check_ragged(const Graph& g, const Node& n);
std::unique_ptr<Step> make_ragged_step(const Graph& g, const Node& n, const Device& d);

}  // namespace tsr::cuda
