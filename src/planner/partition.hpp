// SPDX-License-Identifier: Apache-2.0
// Covers a graph with regions: greedy merging along edges, as far as some engine accepts the merged region.
#pragma once

#include <functional>

#include "planner/engine.hpp"

namespace tsr {

// Which nodes read each tensor, and which nodes contribute to an output at all.
struct GraphIndex {
  explicit GraphIndex(const Graph& g);
  std::vector<std::vector<NodeId>> consumers;  // by tensor
  std::vector<bool> live;                      // by node
};

Region make_region(const Graph& g, const GraphIndex& index, std::vector<NodeId> nodes);

// Regions in an order in which they can run. `accepts` says whether a region of several nodes is worth having.
std::vector<Region> partition(const Graph& g, const std::function<bool(const Region&)>& accepts);

}  // namespace tsr
