// SPDX-License-Identifier: Apache-2.0
#include "engines/rnn/tensors.hpp"

#include <algorithm>
#include <tuple>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

RnnTensor describe_slot(const Graph& g, const std::vector<TensorId>& slots, int slot) {
  if (slot < 0 || slot >= static_cast<int>(slots.size()) || slots[static_cast<size_t>(slot)] == kNone) return {};
  const Tensor& t = g.tensor(slots[static_cast<size_t>(slot)]);
  return {slots[static_cast<size_t>(slot)], t.dtype, t.dims, t.strides};
}

const RnnSlots& slots_of(const Node& n) {
  return n.op == &ops::rnn_fwd ? kRnnFwdSlots : n.op == &ops::rnn_bwd_data ? kRnnBwdDataSlots : kRnnBwdWeightsSlots;
}

// Gradients of the same network: one of the data, one of the weights.
bool is_pair(const Graph& g, const Node& a, const Node& b) {
  auto of_weights = [](const Node& n) { return n.op == &ops::rnn_bwd_weights; };
  if (a.op == &ops::rnn_fwd || b.op == &ops::rnn_fwd || of_weights(a) == of_weights(b)) return false;
  auto operands = [&](const Node& n) {
    const RnnSlots& s = slots_of(n);
    std::vector<TensorId> list;
    for (int slot : {s.x, s.weight, s.h0, s.c0, s.seq_lengths, s.dy, s.dhn, s.dcn})
      list.push_back(describe_slot(g, n.in, slot).id);
    return list;
  };
  auto options = [](const Node& n) {
    const auto& o = attrs<tessera::RnnOptions>(n);
    return std::make_tuple(o.mode, o.hidden, o.proj, o.layers, o.bidirectional, o.input, o.bias, o.layout, o.packed,
                           o.clip_min, o.clip_max, o.clip_nan, o.dropout, o.seed, o.phase);
  };
  return a.compute == b.compute && operands(a) == operands(b) && options(a) == options(b);
}

}  // namespace

RnnTensors rnn_tensors(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const RnnSlots& s = slots_of(n);
  auto in = [&](int slot) { return describe_slot(g, n.in, slot); };
  // Results that nobody wants have no memory.
  auto out = [&](const OpSpec& op, int slot) {
    RnnTensor t;
    for (NodeId m : r.nodes)
      if (g.node(m).op == &op) t = describe_slot(g, g.node(m).out, slot);
    return std::find(r.outputs.begin(), r.outputs.end(), t.id) == r.outputs.end() ? RnnTensor{} : t;
  };
  RnnTensors t;
  t.x = in(s.x), t.weight = in(s.weight), t.h0 = in(s.h0), t.c0 = in(s.c0), t.lengths = in(s.seq_lengths);
  t.dy = in(s.dy), t.dhn = in(s.dhn), t.dcn = in(s.dcn);
  t.y = out(ops::rnn_fwd, 0), t.hn = out(ops::rnn_fwd, 1), t.cn = out(ops::rnn_fwd, 2);
  t.dx = out(ops::rnn_bwd_data, 0), t.dh0 = out(ops::rnn_bwd_data, 1), t.dc0 = out(ops::rnn_bwd_data, 2);
  t.dweight = out(ops::rnn_bwd_weights, 0);
  return t;
}

RnnExtent rnn_extent(const tessera::RnnOptions& o, const RnnTensors& t) {
  bool batch_major = o.layout == tessera::RnnLayout::batch_major;
  RnnExtent e{};
  e.steps = t.x.dims[batch_major ? 1 : 0];
  e.batch = o.packed ? t.lengths.dims[0] : t.x.dims[batch_major ? 0 : 1];
  e.rows = o.packed ? t.x.dims[0] : e.steps * e.batch;
  return e;
}

Reason check_rnn_region(const Region& r, bool pairs) {
  for (NodeId id : r.nodes) {
    const Node& n = r.graph->node(id);
    if (n.op != &ops::rnn_fwd && n.op != &ops::rnn_bwd_data && n.op != &ops::rnn_bwd_weights)
      return Reason::no(spelling(n), " is no recurrent network");
    for (const auto* list : {&n.in, &n.out})
      for (TensorId t : *list) {
        if (t == kNone) continue;
        const Tensor& x = r.graph->tensor(t);
        if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
        if (tsr::info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
      }
  }
  bool pair = pairs && r.nodes.size() == 2 && is_pair(*r.graph, r.graph->node(r.nodes[0]), r.graph->node(r.nodes[1]));
  return r.nodes.size() == 1 || pair ? Reason::yes() : Reason::no("a recurrent network runs alone");
}

}  // namespace tsr
