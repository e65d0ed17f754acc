// SPDX-License-Identifier: Apache-2.0
// Gathering sequences from pages on a GPU.
#pragma once

#include <memory>

#include "planner/engine.hpp"

namespace tsr::cuda {

Reason check_pages(const Graph& g, const Node& n);
std::unique_ptr<Step> make_pages_step(const Graph& g, const Node& n, const Device& d);

}  // namespace tsr::cuda
