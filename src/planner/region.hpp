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

template <class List, class T>
bool contains(const List& list, const T& x) {
  return std::find(list.begin(), list.end(), x) != list.end();
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
