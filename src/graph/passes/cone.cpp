// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/cone.hpp"
#include "graph/ops/list.hpp"

#include <algorithm>
#include <limits>

namespace tsr {
namespace {

using M = PointwiseMode;

bool in_cone(const GraphView& v, NodeId n) { return v.is(n, ops::pointwise) || v.is(n, ops::band_mask); }

bool is_index(const GraphView& v, TensorId t, int64_t axis) {
  NodeId n = v.producer(t);
  return v.is_pointwise(n, M::gen_index) && attrs<tessera::PointwiseOptions>(v.node(n)).axis == axis;
}

// The length of `index of axis < length`, or kNone.
TensorId bound_of(const GraphView& v, TensorId t, int64_t axis) {
  NodeId n = v.producer(t);
  return v.is_pointwise(n, M::cmp_lt) && is_index(v, v.in(n, 0), axis) ? v.in(n, 1) : kNone;
}

bool may_be_minus_infinity(const Tensor& t) {
  if (!t.is_constant() || t.numel() != 1) return t.by_value;
  return load<double>(t.dtype, t.constant.data(), 0) == -std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<Cone> find_cone(const GraphView& v, TensorId logits) {
  std::set<NodeId> above;
  std::set<TensorId> products;
  std::vector<TensorId> todo = {logits};
  const Dims& dims = v.tensor(logits).dims;
  while (!todo.empty()) {
    TensorId t = todo.back();
    todo.pop_back();
    NodeId n = v.producer(t);
    if (v.is(n, ops::matmul) && v.tensor(t).dims == dims) products.insert(t);
    if (!in_cone(v, n) || !above.insert(n).second) continue;
    for (TensorId x : v.node(n).in)
      if (x != kNone) todo.push_back(x);
  }
  if (products.size() != 1) return std::nullopt;
  Cone c;
  c.scores = *products.begin();
  c.product = v.producer(c.scores);
  std::set<TensorId> dependent = {c.scores};
  for (NodeId n : above) {  // ascending: topological
    const auto& in = v.node(n).in;
    if (std::none_of(in.begin(), in.end(), [&](TensorId t) { return dependent.count(t) > 0; })) continue;
    dependent.insert(v.out(n));
    c.nodes.push_back(n);
  }
  if (!dependent.count(logits)) return std::nullopt;
  return c;
}

std::optional<PaddingMask> find_padding_mask(const GraphView& v, TensorId condition) {
  NodeId both = v.producer(condition);
  if (!v.is_pointwise(both, M::logical_and)) return std::nullopt;
  for (size_t slot : {0, 1}) {
    TensorId rows = bound_of(v, v.in(both, slot), 2), columns = bound_of(v, v.in(both, 1 - slot), 3);
    if (rows != kNone && columns != kNone) return PaddingMask{condition, rows, columns};
  }
  for (size_t slot : {0, 1})
    if (auto found = find_padding_mask(v, v.in(both, slot))) return found;
  return std::nullopt;
}

bool masks_padding(const GraphView& v, const std::vector<NodeId>& nodes, TensorId seq_len_q, TensorId seq_len_kv) {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId n) {
    auto mask = v.is_pointwise(n, M::select) ? find_padding_mask(v, v.in(n, 2)) : std::nullopt;
    return mask && mask->seq_len_q == seq_len_q && mask->seq_len_kv == seq_len_kv;
  });
}

TensorId masked_causally(const GraphView& v, NodeId n) {
  const std::vector<TensorId>& in = v.node(n).in;
  if (v.is(n, ops::band_mask)) {
    bool bounds = std::any_of(in.begin() + 2, in.end(), [](TensorId t) { return t != kNone; });
    bool right = attrs<tessera::BandMaskOptions>(v.node(n)).compare == M::cmp_ge && !bounds;
    return right && may_be_minus_infinity(v.tensor(in[1])) ? in[0] : kNone;
  }
  if (!v.is_pointwise(n, M::select) || !may_be_minus_infinity(v.tensor(in[1]))) return kNone;
  NodeId below = v.producer(in[2]);
  bool right = v.is_pointwise(below, M::cmp_ge) && is_index(v, v.in(below, 0), 2) && is_index(v, v.in(below, 1), 3);
  return right ? in[0] : kNone;
}

Tensor ConeCopy::copy(TensorId t) const {
  Tensor c = v_.tensor(t);
  c.uid = 0;
  c.ragged = kNone;
  c.dtype_given = c.dims_given = c.strides_given = true;
  return c;
}

void ConeCopy::param(TensorId t, DType type) {
  Tensor c = copy(t);
  c.dtype = type;
  c.strides = packed_strides(c.dims);
  c.stored = true;
  inner_[t] = graph_->graph.add_tensor(std::move(c));
  graph_->params.push_back(inner_[t]);
}

TensorId ConeCopy::import(TensorId t) {
  auto it = inner_.find(t);
  if (it != inner_.end()) return it->second;
  Tensor c = copy(t);
  bool constant = c.is_constant();
  c.stored = !constant;
  TensorId id = inner_[t] = graph_->graph.add_tensor(std::move(c));
  if (!constant) {
    graph_->captures.push_back(id);
    captured_.push_back(t);
  }
  return id;
}

void ConeCopy::add(NodeId id) {
  Node n = v_.node(id);
  for (TensorId& t : n.in)
    if (t != kNone) t = import(t);
  for (TensorId& t : n.out) {
    if (t == kNone) continue;
    Tensor c = copy(t);
    c.stored = false;
    t = inner_[t] = graph_->graph.add_tensor(std::move(c));
  }
  n.compute_given = true;
  graph_->graph.add_node(std::move(n));
}

tessera::Subgraph ConeCopy::finish(TensorId result, std::vector<TensorId>& captured) {
  TensorId r = inner_.at(result);
  if (graph_->graph.producer(r) == kNone) {
    // A parameter that is passed through; results must be computed.
    auto spelled = find_spelling("identity");
    Node n;
    n.op = spelled->op;
    n.attrs = spelled->options;
    n.in = {r};
    r = graph_->graph.node(graph_->graph.add_node(std::move(n))).out[0];
  }
  graph_->results = {r};
  graph_->graph.mark_output(r);
  graph_->graph.finalize();
  captured.insert(captured.end(), captured_.begin(), captured_.end());
  return std::move(graph_);
}

}  // namespace tsr
