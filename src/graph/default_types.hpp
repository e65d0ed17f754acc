// SPDX-License-Identifier: Apache-2.0
// Types that an author gives for a whole graph. Front ends apply them while they add nodes, so that the graph itself
// holds nothing but the types that came out.
#pragma once

#include <unordered_set>

#include "graph/graph.hpp"

namespace tsr {

class DefaultTypes {
 public:
  tessera::Types types;

  // Before a node is added: what it computes in, unless it computes with integers or says so itself.
  void set_compute(const Graph& g, Node& n) const;
  // After it was added: the types of its results.
  void set_results(Graph& g, NodeId id);
  // A result becomes an output.
  void set_output(Graph& g, TensorId t);
  // The author gave a result its type after all.
  void forget(TensorId t) { ours_.erase(t); }

 private:
  std::unordered_set<TensorId> ours_;  // results whose type was set here
};

}  // namespace tsr
