// SPDX-License-Identifier: Apache-2.0
#include "planner/ragged.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/passes/rewrite.hpp"
#include "graph/ragged.hpp"
#include "planner/choice.hpp"
#include "planner/partition.hpp"

namespace tsr {
namespace {

// Without gaps, in the order of its memory.
void pad(Tensor& t) {
  t.ragged = kNone;
  t.ragged_multiplier = 1;
  t.strides = strides_like(t.dims, &t);
}

Tensor padded_copy(const Tensor& t) {
  Tensor y = t;
  pad(y);
  y.name.clear();
  y.uid = 0;
  y.stored = y.by_value = y.frozen = false;
  y.constant.clear();
  y.alignment = Tensor{}.alignment;
  return y;
}

// Finds out what the engines of a device take as it is. Descriptions of tensors change while they are asked.
class Inquiry {
 public:
  Inquiry(const Graph& g, const Device& d) : original_(g), device_(d), graph_(g), index_(g), choice_(d, {}) {}

  // The ragged tensors of a node that must be padded for it. Results are asked for first: they stay packed where that
  // is possible, because attention leaves memory alone that lies in a sequence but beyond its length. The last resort
  // counts only where nothing else would take the node.
  std::vector<TensorId> to_pad(NodeId n) {
    std::vector<TensorId> ragged = ragged_tensors(n), padded;
    if (ragged.empty() || is_taken(n, false)) return {};
    for (TensorId t : ragged) pad(graph_.edit(t));
    bool last_resort = !is_taken(n, false);
    for (TensorId t : ragged) {
      graph_.edit(t) = original_.tensor(t);
      if (is_taken(n, last_resort)) continue;
      pad(graph_.edit(t));
      padded.push_back(t);
    }
    for (TensorId t : padded) graph_.edit(t) = original_.tensor(t);
    return padded;
  }

 private:
  std::vector<TensorId> ragged_tensors(NodeId id) const {
    const Node& n = original_.node(id);
    std::vector<TensorId> found;
    for (const auto* list : {&n.out, &n.in, &n.captures})
      for (TensorId t : *list)
        if (t != kNone && original_.tensor(t).ragged != kNone && !contains(found, t)) found.push_back(t);
    return found;
  }

  bool is_taken(NodeId n, bool last_resort) const {
    Asked region(make_region(graph_, index_, {n}), device_);
    return choice_.seconds(region, last_resort ? Takers::all : Takers::no_last_resort) < kImpossible;
  }

  const Graph& original_;
  const Device& device_;
  Graph graph_;
  GraphIndex index_;
  Choice choice_;
};

// A transposition that keeps the order of dimensions copies any type.
Node copy(const Tensor& x, TensorId from, TensorId to) {
  tessera::TransposeOptions o;
  o.perm.resize(static_cast<size_t>(x.rank()));
  std::iota(o.perm.begin(), o.perm.end(), 0);
  Node n;
  n.op = &op("transpose");
  n.attrs = o;
  n.in = {from};
  n.out = {to};
  return n;
}

// Puts copies between nodes and ragged tensors.
class Unpacking {
 public:
  explicit Unpacking(const Graph& g) : view_(g), rewrite_(view_) {}
  const GraphView& view() const { return view_; }

  void pad_node(NodeId id, const std::vector<TensorId>& padded) {
    Node n = view_.node(id);
    for (auto* list : {&n.in, &n.captures})
      for (TensorId& t : *list)
        if (contains(padded, t)) t = unpacked(t);
    for (TensorId& t : n.out) {
      if (!contains(padded, t)) continue;
      TensorId result = rewrite_.add(padded_copy(view_.tensor(t)));
      rewrite_.add(copy(view_.tensor(t), result, t));
      t = result;
    }
    rewrite_.remove({id});
    rewrite_.add(std::move(n));
  }
  std::shared_ptr<const Graph> build() const { return rewrite_.build(); }

 private:
  // All readers share one copy.
  TensorId unpacked(TensorId t) {
    auto [it, fresh] = unpacked_.try_emplace(t, kNone);
    if (fresh) {
      it->second = rewrite_.add(padded_copy(view_.tensor(t)));
      rewrite_.add(copy(view_.tensor(t), t, it->second));
    }
    return it->second;
  }

  GraphView view_;
  Rewrite rewrite_;
  std::map<TensorId, TensorId> unpacked_;
};

}  // namespace

std::shared_ptr<const Graph> pad_virtual(std::shared_ptr<const Graph> g) {
  std::shared_ptr<Graph> changed;
  for (TensorId t = 0; t < g->tensor_count(); ++t) {
    if (g->tensor(t).ragged == kNone || g->tensor(t).stored) continue;
    if (!changed) changed = std::make_shared<Graph>(*g);
    pad(changed->edit(t));
  }
  if (!changed) return g;
  changed->finalize();
  return changed;
}

std::shared_ptr<const Graph> unpack_ragged(std::shared_ptr<const Graph> g, const Device& d) {
  if (!has_ragged(*g)) return g;
  Inquiry inquiry(*g, d);
  Unpacking unpacking(*g);
  bool changed = false;
  for (NodeId n = 0; n < g->node_count(); ++n) {
    if (!unpacking.view().live(n)) continue;
    std::vector<TensorId> padded = inquiry.to_pad(n);
    if (padded.empty()) continue;
    unpacking.pad_node(n, padded);
    changed = true;
  }
  return changed ? unpacking.build() : g;
}

}  // namespace tsr
