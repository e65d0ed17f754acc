// SPDX-License-Identifier: Apache-2.0
// Sampling of images at the places of a grid (spatial transformers), and its gradients.
#pragma once

#include "graph/op.hpp"
#include "planner/engine.hpp"

namespace tsr::cpu {

bool is_grid_work(const Node& n);
std::unique_ptr<Step> make_grid_step(const Graph& g, const Node& n, int threads);
double grid_seconds(const Region& r, const Device& d);

}  // namespace tsr::cpu
