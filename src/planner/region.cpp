// SPDX-License-Identifier: Apache-2.0
#include "planner/region.hpp"

#include <algorithm>

#include "graph/op.hpp"

namespace tsr {
namespace {

void add_once(std::vector<TensorId>& v, TensorId t) {
  if (!contains(v, t)) v.push_back(t);
}

}  // namespace

GraphIndex::GraphIndex(const Graph& g)
    : consumers(static_cast<size_t>(g.tensor_count())), live(static_cast<size_t>(g.node_count()), false) {
  for (NodeId n = g.node_count() - 1; n >= 0; --n) {
    bool needed = false;
    for (TensorId t : g.node(n).out)
      needed = needed || (t != kNone && (g.tensor(t).stored || !consumers[static_cast<size_t>(t)].empty()));
    live[static_cast<size_t>(n)] = needed;
    if (!needed) continue;
    for (TensorId t : node_reads(g, g.node(n))) consumers[static_cast<size_t>(t)].push_back(n);
  }
}

Region make_region(const Graph& g, const GraphIndex& index, std::vector<NodeId> nodes) {
  Region r;
  r.graph = &g;
  auto inside = [&](NodeId n) { return std::binary_search(nodes.begin(), nodes.end(), n); };
  for (NodeId n : nodes) {
    for (TensorId t : node_reads(g, g.node(n)))
      if (g.producer(t) == kNone || !inside(g.producer(t))) add_once(r.inputs, t);
    for (TensorId t : g.node(n).out) {
      if (t == kNone) continue;
      const auto& users = index.consumers[static_cast<size_t>(t)];
      bool outside =
          g.tensor(t).stored || std::any_of(users.begin(), users.end(), [&](NodeId u) { return !inside(u); });
      (outside ? r.outputs : r.internals).push_back(t);
    }
  }
  r.nodes = std::move(nodes);
  return r;
}

std::vector<NodeId> GraphIndex::live_nodes() const {
  std::vector<NodeId> nodes;
  for (size_t n = 0; n < live.size(); ++n)
    if (live[n]) nodes.push_back(static_cast<NodeId>(n));
  return nodes;
}

}  // namespace tsr
