// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/graph_view.hpp"
#include "graph/ops/list.hpp"

#include <algorithm>

namespace tsr {
namespace {

size_t find_slot(const std::vector<Slot>& slots, std::string_view name) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].name == name) return i;
  fail(Status::internal_error, "no slot named ", name);
}

}  // namespace

GraphView::GraphView(const Graph& g)
    : g_(g), consumers_(static_cast<size_t>(g.tensor_count())), live_(static_cast<size_t>(g.node_count()), false) {
  for (NodeId n = g.node_count() - 1; n >= 0; --n) {
    bool needed = false;
    for (TensorId t : g.node(n).out) needed = needed || (t != kNone && (g.tensor(t).stored || !consumers(t).empty()));
    live_[static_cast<size_t>(n)] = needed;
    if (!needed) continue;
    for (TensorId t : node_reads(g, g.node(n))) {
      auto& list = consumers_[static_cast<size_t>(t)];
      if (list.empty() || list.back() != n) list.push_back(n);
    }
  }
}

bool GraphView::is_pointwise(NodeId n, PointwiseMode mode) const {
  if (!is(n, ops::pointwise)) return false;
  const auto& o = attrs<tessera::PointwiseOptions>(node(n));
  return o.mode == mode && o.alpha1 == 1 && o.alpha2 == 1;
}

bool GraphView::is_reduce(NodeId n, tessera::ReduceMode mode) const {
  return is(n, ops::reduce) && attrs<tessera::ReduceOptions>(node(n)).mode == mode && in(n, 1) == kNone;
}

TensorId GraphView::number_factor(NodeId n, TensorId& rest) const {
  if (!is_pointwise(n, PointwiseMode::mul)) return kNone;
  for (size_t slot : {1, 0})
    if (is_scalar(in(n, slot)) && is_real(tensor(in(n, slot)).dtype)) {
      rest = in(n, 1 - slot);
      return in(n, slot);
    }
  return kNone;
}

NodeId GraphView::amax_of(TensorId t) const {
  for (NodeId n : consumers(t))
    if (is_reduce(n, tessera::ReduceMode::amax) && tensor(out(n)).numel() == 1) return n;
  return kNone;
}

bool GraphView::hidden(TensorId t, const std::set<NodeId>& inside) const {
  return g_.producer(t) != kNone && !tensor(t).stored && !wanted(t, inside);
}

bool GraphView::read_elsewhere(TensorId t, const std::set<NodeId>& inside) const {
  const auto& users = consumers(t);
  return std::any_of(users.begin(), users.end(), [&](NodeId n) { return !inside.count(n); });
}

bool GraphView::wanted(TensorId t, const std::set<NodeId>& inside) const {
  return tensor(t).stored || read_elsewhere(t, inside);
}

size_t input_slot(const OpSpec& op, std::string_view name) { return find_slot(op.in, name); }
size_t output_slot(const OpSpec& op, std::string_view name) { return find_slot(op.out, name); }

}  // namespace tsr
