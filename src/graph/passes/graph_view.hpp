// SPDX-License-Identifier: Apache-2.0
// A graph as patterns look at it: who reads what, which nodes matter, what a node is.
#pragma once

#include <set>

#include "graph/op.hpp"
#include "graph/pointwise_modes.hpp"

namespace tsr {

class GraphView {
 public:
  explicit GraphView(const Graph& g);

  const Graph& graph() const { return g_; }
  const Node& node(NodeId n) const { return g_.node(n); }
  const Tensor& tensor(TensorId t) const { return g_.tensor(t); }
  // Nodes from which an output of the graph can be reached.
  bool live(NodeId n) const { return live_[static_cast<size_t>(n)]; }
  const std::vector<NodeId>& consumers(TensorId t) const { return consumers_[static_cast<size_t>(t)]; }  // live ones
  NodeId producer(TensorId t) const { return t == kNone ? kNone : g_.producer(t); }

  // Tests that accept kNone as "no".
  bool is(NodeId n, const OpSpec& op) const { return n != kNone && node(n).op == &op; }
  bool is_pointwise(NodeId n, PointwiseMode mode) const;     // with factors of 1
  bool is_reduce(NodeId n, tessera::ReduceMode mode) const;  // without groups
  bool is_scalar(TensorId t) const { return t != kNone && tensor(t).numel() == 1 && !is_complex(tensor(t).dtype); }
  TensorId in(NodeId n, size_t slot) const { return slot < node(n).in.size() ? node(n).in[slot] : kNone; }
  TensorId out(NodeId n, size_t slot = 0) const { return slot < node(n).out.size() ? node(n).out[slot] : kNone; }
  // The operand of a two-operand node that is not `t`; kNone when `t` is none of them.
  TensorId other(NodeId n, TensorId t) const { return in(n, 0) == t ? in(n, 1) : in(n, 1) == t ? in(n, 0) : kNone; }
  // The factor of a multiplication by one number, or kNone; `rest` is the other operand.
  TensorId number_factor(NodeId n, TensorId& rest) const;
  // The node that takes the largest magnitude of all of `t`, or kNone.
  NodeId amax_of(TensorId t) const;
  // Produced, not stored and read by `inside` alone.
  bool hidden(TensorId t, const std::set<NodeId>& inside) const;
  bool read_elsewhere(TensorId t, const std::set<NodeId>& inside) const;
  // Somebody other than `inside` wants it: it is stored or read elsewhere.
  bool wanted(TensorId t, const std::set<NodeId>& inside) const;

 private:
  const Graph& g_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> live_;
};

// Position of a slot by name; a name that does not exist is a bug.
size_t input_slot(const OpSpec& op, std::string_view name);
size_t output_slot(const OpSpec& op, std::string_view name);

}  // namespace tsr
