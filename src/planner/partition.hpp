// SPDX-License-Identifier: Apache-2.0
// Covers a graph with regions: greedy merging along edges, as long as some engine accepts the merged region and it is
// modelled to take no longer than its parts.
#pragma once

#include <functional>
#include <limits>

#include "planner/engine.hpp"

namespace tsr {

// Which nodes read each tensor, and which nodes contribute to an output at all.
struct GraphIndex {
  explicit GraphIndex(const Graph& g);
  std::vector<std::vector<NodeId>> consumers;  // by tensor
  std::vector<bool> live;                      // by node
};

Region make_region(const Graph& g, const GraphIndex& index, std::vector<NodeId> nodes);

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// Regions in an order in which they can run. `cost` gives the modelled seconds of a region, or kImpossible.
std::vector<Region> partition(const Graph& g, const std::function<double(const Region&)>& cost);

}  // namespace tsr
