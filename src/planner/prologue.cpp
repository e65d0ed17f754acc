// SPDX-License-Identifier: Apache-2.0
#include "planner/prologue.hpp"

#include "graph/op.hpp"

namespace tsr {
namespace {

// The region of some of the nodes.
Region part_of(const Region& r, std::vector<NodeId> nodes, std::vector<TensorId> outputs) {
  Region part;
  part.graph = r.graph;
  part.nodes = std::move(nodes);
  part.outputs = std::move(outputs);
  std::vector<TensorId> made;
  for (NodeId n : part.nodes) {
    for (TensorId t : node_reads(*r.graph, r.graph->node(n)))
      if (!contains(made, t) && !contains(part.inputs, t)) part.inputs.push_back(t);
    for (TensorId t : r.graph->node(n).out)
      if (t != kNone) made.push_back(t);
  }
  for (TensorId t : made)
    if (!contains(part.outputs, t)) part.internals.push_back(t);
  return part;
}

// Nodes of the region that a tensor comes from, in their order.
std::vector<NodeId> leading_to(const Region& r, TensorId t) {
  std::vector<TensorId> wanted = {t};
  std::vector<NodeId> nodes;
  for (size_t i = r.nodes.size(); i-- > 0;) {
    const Node& n = r.graph->node(r.nodes[i]);
    if (std::none_of(n.out.begin(), n.out.end(), [&](TensorId o) { return o != kNone && contains(wanted, o); }))
      continue;
    nodes.insert(nodes.begin(), r.nodes[i]);
    for (TensorId read : node_reads(*r.graph, n)) wanted.push_back(read);
  }
  return nodes;
}

}  // namespace

Reason cut_prologues(const Region& r, NodeId anchor, CutRegion* out) {
  const Graph& g = *r.graph;
  const Node& a = g.node(anchor);
  std::vector<NodeId> before, rest;
  for (size_t i = 0; i < 2; ++i) {
    out->before[i] = part_of(r, leading_to(r, a.in[i]), {a.in[i]});
    for (NodeId n : out->before[i].nodes)
      if (!contains(before, n)) before.push_back(n);
  }
  for (NodeId n : r.nodes)
    if (!contains(before, n)) rest.push_back(n);
  out->rest = part_of(r, rest, r.outputs);
  for (NodeId b : before) {
    for (TensorId t : g.node(b).out) {
      if (t == kNone) continue;
      if (contains(r.outputs, t)) return Reason::no("tensor ", describe(g.tensor(t)), " before the product is stored");
      for (NodeId n : rest)
        for (TensorId read : node_reads(g, g.node(n)))
          if (read == t && (n != anchor || (t != a.in[0] && t != a.in[1])))
            return Reason::no("tensor ", describe(g.tensor(t)), " before the product is also read behind it");
    }
  }
  return Reason::yes();
}

}  // namespace tsr
