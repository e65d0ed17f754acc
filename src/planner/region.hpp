// SPDX-License-Identifier: Apache-2.0
// A part of a graph that one step computes.
#pragma once

#include <algorithm>

#include "graph/graph.hpp"

namespace tsr {

// Nodes are in topological order.
struct Region {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
  std::vector<TensorId> inputs;     // read, not produced inside; constants included
  std::vector<TensorId> outputs;    // produced inside; stored, or read by other regions
  std::vector<TensorId> internals;  // produced and used inside only
};

// Which nodes read each tensor, and which nodes contribute to an output at all.
struct GraphIndex {
  explicit GraphIndex(const Graph& g);
  std::vector<NodeId> live_nodes() const;
  std::vector<std::vector<NodeId>> consumers;  // by tensor
  std::vector<bool> live;                      // by node
};

inline bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Thrown and caught inside the planner only, where many functions look at a region: why it cannot be done.
struct Declined {
  Reason reason;
};
template <class... Parts>
[[noreturn]] void decline(const Parts&... parts) {
  throw Declined{Reason::no(parts...)};
}

Region make_region(const Graph& g, const GraphIndex& index, std::vector<NodeId> nodes);

}  // namespace tsr
