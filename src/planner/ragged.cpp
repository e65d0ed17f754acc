// SPDX-License-Identifier: Apache-2.0
#include "planner/ragged.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/passes/rewrite.hpp"
#include "planner/engine.hpp"
#include "planner/partition.hpp"

namespace tsr {
namespace {

bool has_ragged(const Graph& g) {
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.tensor(t).ragged != kNone) return true;
  return false;
}

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
  Inquiry(const Graph& g, const Device& d) : original_(g), device_(d), graph_(g), index_(g) {}

  // The ragged tensors of a node that must be padded for it. Results first: they stay packed where that is possible,
  // because attention leaves memory alone that lies in a sequence but beyond its length.
  std::vector<TensorId> to_pad(NodeId id) {
    const Node& n = original_.node(id);
    std::vector<TensorId> ragged;
    for (const auto* list : {&n.out, &n.in, &n.captures})
      for (TensorId t : *list)
        if (t != kNone && original_.tensor(t).ragged != kNone &&
            std::find(ragged.begin(), ragged.end(), t) == ragged.end())
          ragged.push_back(t);
    for (TensorId t : ragged) pad(graph_.edit(t));
    auto stays = [&](TensorId t) {
      graph_.edit(t) = original_.tensor(t);
      bool taken = is_taken(id);
      if (!taken) pad(graph_.edit(t));
      return taken;
    };
    std::vector<TensorId> padded = ragged;
    std::erase_if(padded, stays);
    for (TensorId t : padded) graph_.edit(t) = original_.tensor(t);
    return padded;
  }

 private:
  bool is_taken(NodeId n) const {
    Region r = make_region(graph_, index_, {n});
    auto engines = all_engines();
    return std::any_of(engines.begin(), engines.end(),
                       [&](const Engine* e) { return e->info().device == device_.kind && e->check(r, device_).ok(); });
  }

  const Graph& original_;
  const Device& device_;
  Graph graph_;
  GraphIndex index_;
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

}  // namespace

std::shared_ptr<const Graph> pad_virtual(std::shared_ptr<const Graph> g) {
  auto packed_inside = [&](TensorId t) { return g->tensor(t).ragged != kNone && !g->tensor(t).stored; };
  std::shared_ptr<Graph> changed;
  for (TensorId t = 0; t < g->tensor_count(); ++t) {
    if (!packed_inside(t)) continue;
    if (!changed) changed = std::make_shared<Graph>(*g);
    pad(changed->edit(t));
  }
  if (!changed) return g;
  changed->finalize();
  return changed;
}

std::shared_ptr<const Graph> unpack_ragged(std::shared_ptr<const Graph> g, const Device& d) {
  if (!has_ragged(*g)) return g;
  GraphView view(*g);
  Rewrite rewrite(view);
  Inquiry inquiry(*g, d);
  std::map<TensorId, TensorId> unpacked;  // all readers share one copy
  bool changed = false;
  auto unpack = [&](TensorId t) {
    auto [it, fresh] = unpacked.try_emplace(t, kNone);
    if (fresh) {
      it->second = rewrite.add(padded_copy(g->tensor(t)));
      rewrite.add(copy(g->tensor(t), t, it->second));
    }
    return it->second;
  };
  for (NodeId id = 0; id < g->node_count(); ++id) {
    if (!view.live(id)) continue;
    std::vector<TensorId> padded = inquiry.to_pad(id);
    if (padded.empty()) continue;
    auto is_padded = [&](TensorId t) { return std::find(padded.begin(), padded.end(), t) != padded.end(); };
    Node n = g->node(id);
    for (auto* list : {&n.in, &n.captures})
      for (TensorId& t : *list)
        if (is_padded(t)) t = unpack(t);
    for (TensorId& t : n.out) {
      if (!is_padded(t)) continue;
      TensorId result = rewrite.add(padded_copy(g->tensor(t)));
      rewrite.add(copy(g->tensor(t), result, t));
      t = result;
    }
    rewrite.remove({id});
    rewrite.add(std::move(n));
    changed = true;
  }
  return changed ? rewrite.build() : g;
}

}  // namespace tsr
