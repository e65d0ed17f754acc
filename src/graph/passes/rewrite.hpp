// SPDX-License-Identifier: Apache-2.0
// A changed copy of a graph: nodes taken out, nodes and tensors put in, tensors described anew.
#pragma once

#include <map>
#include <memory>

#include "graph/passes/graph_view.hpp"

namespace tsr {

class Rewrite {
 public:
  explicit Rewrite(const GraphView& view) : view_(&view) {}
  void remove(const std::set<NodeId>& nodes) { removed_.insert(nodes.begin(), nodes.end()); }
  void add(Node n) { added_.push_back(std::move(n)); }
  // A tensor that the graph does not have; its id may be used in added nodes.
  TensorId add(Tensor t);
  // Another description of the memory of `t`.
  void describe(TensorId t, Tensor description) { described_[t] = std::move(description); }
  bool overlaps(const Rewrite& other) const;
  void merge(const Rewrite& other);  // of the same view, without overlap
  // The finalized graph, without nodes and virtual tensors that nothing needs. Raises Error when it is not legal.
  std::shared_ptr<const Graph> build() const;

 private:
  const Tensor& tensor(TensorId t) const;
  const GraphView* view_;
  std::set<NodeId> removed_;
  std::vector<Node> added_;
  std::vector<Tensor> fresh_;
  std::map<TensorId, Tensor> described_;
};

// The same memory with the last two dimensions of a rank-4 tensor exchanged.
Tensor transposed(Tensor t);
// The tensor that `t`, read by the nodes `inside`, is the transpose of in this way: an input that nothing else reads is
// described the other way round, and a transposition's operand is there already. Otherwise `t` is transposed again.
TensorId turned_back(TensorId t, const std::set<NodeId>& inside, const GraphView& v, Rewrite& r);

}  // namespace tsr
