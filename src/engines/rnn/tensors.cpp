// SPDX-License-Identifier: Apache-2.0
#include "engines/rnn/tensors.hpp"

#include <algorithm>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

RnnTensor describe_slot(const Graph& g, const std::vector<TensorId>& slots, int slot) {
  if (slot < 0 || slot >= static_cast<int>(slots.size()) || slots[static_cast<size_t>(slot)] == kNone) return {};
  const Tensor& t = g.tensor(slots[static_cast<size_t>(slot)]);
  return {slots[static_cast<size_t>(slot)], t.dtype, t.dims, t.strides};
}

}  // namespace

RnnTensors rnn_tensors(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  bool forward = n.op == &ops::rnn_fwd, data = n.op == &ops::rnn_bwd_data;
  const RnnSlots& s = forward ? kRnnFwdSlots : data ? kRnnBwdDataSlots : kRnnBwdWeightsSlots;
  auto in = [&](int slot) { return describe_slot(g, n.in, slot); };
  // Results that nobody wants have no memory.
  auto out = [&](bool has, int slot) {
    RnnTensor t = has ? describe_slot(g, n.out, slot) : RnnTensor{};
    return std::find(r.outputs.begin(), r.outputs.end(), t.id) == r.outputs.end() ? RnnTensor{} : t;
  };
  RnnTensors t;
  t.x = in(s.x), t.weight = in(s.weight), t.h0 = in(s.h0), t.c0 = in(s.c0), t.lengths = in(s.seq_lengths);
  t.dy = in(s.dy), t.dhn = in(s.dhn), t.dcn = in(s.dcn);
  t.y = out(forward, 0), t.hn = out(forward, 1), t.cn = out(forward, 2);
  t.dx = out(data, 0), t.dh0 = out(data, 1), t.dc0 = out(data, 2);
  t.dweight = out(!forward && !data, 0);
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

Reason check_rnn_region(const Region& r) {
  if (r.nodes.size() != 1) return Reason::no("a recurrent network runs alone");
  const Node& n = r.graph->node(r.nodes[0]);
  if (n.op != &ops::rnn_fwd && n.op != &ops::rnn_bwd_data && n.op != &ops::rnn_bwd_weights)
    return Reason::no(spelling(n), " is no recurrent network");
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list) {
      if (t == kNone) continue;
      const Tensor& x = r.graph->tensor(t);
      if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
      if (tsr::info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
    }
  return Reason::yes();
}

}  // namespace tsr
