// SPDX-License-Identifier: Apache-2.0
// Covers a graph with regions: greedy merging along edges, as long as some engine accepts the merged region and it is
// modelled to take no longer than its parts.
#pragma once

#include <functional>
#include <limits>

#include "planner/region.hpp"

namespace tsr {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

using NodeList = std::vector<NodeId>;  // in ascending order
// Modelled seconds of the region that has these nodes, or kImpossible.
using RegionCost = std::function<double(const NodeList&)>;

// The nodes of each region, in an order in which they can run.
std::vector<NodeList> partition(const Graph& g, const GraphIndex& index, const RegionCost& cost);

}  // namespace tsr
