// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/rewrite.hpp"
#include "graph/ops/list.hpp"

#include <algorithm>

namespace tsr {

TensorId Rewrite::add(Tensor t) {
  fresh_.push_back(std::move(t));
  return view_->graph().tensor_count() + static_cast<TensorId>(fresh_.size()) - 1;
}

const Tensor& Rewrite::tensor(TensorId t) const {
  if (t >= view_->graph().tensor_count()) return fresh_[static_cast<size_t>(t - view_->graph().tensor_count())];
  auto it = described_.find(t);
  return it == described_.end() ? view_->tensor(t) : it->second;
}

bool Rewrite::overlaps(const Rewrite& other) const {
  return std::any_of(other.removed_.begin(), other.removed_.end(), [&](NodeId n) { return removed_.count(n) > 0; });
}

void Rewrite::merge(const Rewrite& other) {
  // New tensors are numbered behind those of the graph; the other's come behind ours.
  TensorId old = view_->graph().tensor_count();
  auto shift = static_cast<TensorId>(fresh_.size());
  removed_.insert(other.removed_.begin(), other.removed_.end());
  fresh_.insert(fresh_.end(), other.fresh_.begin(), other.fresh_.end());
  described_.insert(other.described_.begin(), other.described_.end());
  for (Node n : other.added_) {
    for (auto* list : {&n.in, &n.out, &n.captures})
      for (TensorId& t : *list)
        if (t >= old) t += shift;
    added_.push_back(std::move(n));
  }
}

Tensor transposed(Tensor t) {
  std::swap(t.dims[2], t.dims[3]);
  std::swap(t.strides[2], t.strides[3]);
  return t;
}

TensorId turned_back(TensorId t, const std::set<NodeId>& inside, const GraphView& v, Rewrite& r) {
  NodeId n = v.producer(t);
  if (n == kNone && !v.tensor(t).is_constant() && !v.read_elsewhere(t, inside)) {
    r.describe(t, transposed(v.tensor(t)));
    return t;
  }
  if (v.is(n, ops::transpose) && attrs<tessera::TransposeOptions>(v.node(n)).perm == Ints{0, 1, 3, 2}) {
    if (v.hidden(t, inside)) r.remove({n});
    return v.in(n, 0);
  }
  Tensor x = transposed(v.tensor(t));
  x.name.clear();
  x.uid = 0;
  x.stored = x.by_value = false;
  x.constant.clear();
  x.ragged = kNone;
  Node turn;
  turn.op = &op("transpose");
  turn.attrs = tessera::TransposeOptions{{0, 1, 3, 2}};
  turn.compute = DType::f32;
  turn.in = {t};
  turn.out = {r.add(std::move(x))};
  TensorId y = turn.out[0];
  r.add(std::move(turn));
  return y;
}

std::shared_ptr<const Graph> Rewrite::build() const {
  const Graph& old = view_->graph();
  std::vector<Node> nodes;
  for (NodeId n = 0; n < old.node_count(); ++n)
    if (view_->live(n) && !removed_.count(n)) nodes.push_back(old.node(n));
  nodes.insert(nodes.end(), added_.begin(), added_.end());

  auto count = static_cast<size_t>(old.tensor_count()) + fresh_.size();
  std::vector<bool> kept(count, false);
  for (size_t i = 0; i < count; ++i) {
    const Tensor& t = tensor(static_cast<TensorId>(i));
    kept[i] = t.stored || t.by_value;
  }
  for (const Node& n : nodes)
    for (const auto* list : {&n.in, &n.out, &n.captures})
      for (TensorId t : *list)
        if (t != kNone) kept[static_cast<size_t>(t)] = true;
  for (size_t i = 0; i < count; ++i)
    if (TensorId offsets = tensor(static_cast<TensorId>(i)).ragged; kept[i] && offsets != kNone)
      kept[static_cast<size_t>(offsets)] = true;

  // Ragged tensors come after the offsets they name; new tensors last, so that their made-up names and unique ids give
  // way.
  auto g = std::make_shared<Graph>();
  std::vector<TensorId> id_of(count, kNone);
  auto place = [&](size_t i) {
    Tensor t = tensor(static_cast<TensorId>(i));
    if (t.ragged != kNone) t.ragged = id_of[static_cast<size_t>(t.ragged)];
    t.dtype_given = t.dims_given = t.strides_given = true;
    id_of[i] = g->add_tensor(std::move(t));
  };
  for (bool ragged : {false, true})
    for (size_t i = 0; i < count; ++i)
      if (kept[i] && id_of[i] == kNone && (ragged || tensor(static_cast<TensorId>(i)).ragged == kNone) &&
          (ragged || i < static_cast<size_t>(old.tensor_count())))
        place(i);
  for (Node& n : nodes) {
    for (auto* list : {&n.in, &n.out, &n.captures})
      for (TensorId& t : *list)
        if (t != kNone) t = id_of[static_cast<size_t>(t)];
    n.compute_given = true;
    g->add_node_unordered(std::move(n));
  }
  g->finalize();
  return g;
}

}  // namespace tsr
