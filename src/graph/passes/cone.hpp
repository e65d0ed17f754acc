// SPDX-License-Identifier: Apache-2.0
// The work on attention scores between the product that makes them and their use: found, checked and copied into a
// sub-graph.
#pragma once

#include <map>
#include <optional>

#include "graph/passes/graph_view.hpp"

namespace tsr {

struct Cone {
  NodeId product = kNone;     // matmul(q, k^T)
  TensorId scores = kNone;    // its result
  std::vector<NodeId> nodes;  // pointwise operations and band masks that depend on the scores, in topological order
};

// The cone that ends with `logits`: above it there is exactly one product of its sizes.
std::optional<Cone> find_cone(const GraphView& v, TensorId logits);

// A condition that is true for (row < seq_len_q and column < seq_len_kv) alone.
struct PaddingMask {
  TensorId condition, seq_len_q, seq_len_kv;
};
// That which `condition` is, or demands among others.
std::optional<PaddingMask> find_padding_mask(const GraphView& v, TensorId condition);
// Whether some node selects by (row < seq_len_q and column < seq_len_kv).
bool masks_padding(const GraphView& v, const std::vector<NodeId>& nodes, TensorId seq_len_q, TensorId seq_len_kv);

// The scores that a node masks by hiding what lies right of the diagonal from the upper left corner; kNone for other
// nodes. It fills in minus infinity, or what arrives only at execution and is trusted to stand for it.
TensorId masked_causally(const GraphView& v, NodeId n);

// Copies nodes into a sub-graph. Constants are copied along, other tensors from outside become captures.
class ConeCopy {
 public:
  explicit ConeCopy(const GraphView& v) : v_(v), graph_(std::make_shared<Subgraph>()) {}
  void param(TensorId t, DType type);                                     // `t` is handed over by the operation
  void alias(TensorId t, TensorId same) { inner_[t] = inner_.at(same); }  // `t` reads as `same`
  bool has(TensorId t) const { return inner_.count(t) > 0; }
  void add(NodeId n);
  // Ends the copy with its result; appends the tensors that it captures to `captured`.
  tessera::Subgraph finish(TensorId result, std::vector<TensorId>& captured);

 private:
  TensorId import(TensorId t);
  Tensor copy(TensorId t) const;
  const GraphView& v_;
  std::shared_ptr<Subgraph> graph_;
  std::map<TensorId, TensorId> inner_;
  std::vector<TensorId> captured_;
};

}  // namespace tsr
