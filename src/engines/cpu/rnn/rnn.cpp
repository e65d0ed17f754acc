// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/rnn/rnn.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/rnn/network.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

// Part of the machine's multiply-adds that a network of useful size reaches.
constexpr double kEfficiency = 0.83;
constexpr double kFewFlops = 1e6;  // not worth waking another thread

RnnTensor describe_slot(const Graph& g, const std::vector<TensorId>& slots, int slot) {
  if (slot < 0 || slot >= static_cast<int>(slots.size()) || slots[static_cast<size_t>(slot)] == kNone) return {};
  const Tensor& t = g.tensor(slots[static_cast<size_t>(slot)]);
  return {slots[static_cast<size_t>(slot)], t.dtype, t.dims, t.strides};
}

RnnTensors tensors_of(const Graph& g, const Node& n) {
  bool forward = n.op->name == "rnn_fwd", data = n.op->name == "rnn_bwd_data";
  const RnnSlots& s = forward ? kRnnFwdSlots : data ? kRnnBwdDataSlots : kRnnBwdWeightsSlots;
  auto in = [&](int slot) { return describe_slot(g, n.in, slot); };
  auto out = [&](bool has, int slot) { return has ? describe_slot(g, n.out, slot) : RnnTensor{}; };
  RnnTensors t;
  t.x = in(s.x), t.weight = in(s.weight), t.h0 = in(s.h0), t.c0 = in(s.c0), t.lengths = in(s.seq_lengths);
  t.dy = in(s.dy), t.dhn = in(s.dhn), t.dcn = in(s.dcn);
  t.y = out(forward, 0), t.hn = out(forward, 1), t.cn = out(forward, 2);
  t.dx = out(data, 0), t.dh0 = out(data, 1), t.dc0 = out(data, 2);
  t.dweight = out(!forward && !data, 0);
  return t;
}

class RnnStep : public Step {
 public:
  RnnStep(const Graph& g, const Node& n, int threads)
      : network_(attrs<tessera::RnnOptions>(n), tensors_of(g, n),
                 n.op->name == "rnn_fwd" ? Network::Pass::forward : Network::Pass::backward, threads) {}
  size_t workspace_bytes() const override { return network_.workspace_bytes(); }
  void run(const StepArgs& a) const override { network_.run(a.tensors, a.workspace); }

 private:
  Network network_;
};

class RnnEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"rnn_cpu", 10, DeviceKind::cpu, true,
                                         "recurrent networks, forward and backward, computed in f32"};
    return kInfo;
  }

  Reason check(const Region& r, const Device&) const override {
    if (r.nodes.size() != 1) return Reason::no("a recurrent network runs alone");
    const Node& n = r.graph->node(r.nodes[0]);
    if (n.op != &ops::rnn_fwd && n.op != &ops::rnn_bwd_data && n.op != &ops::rnn_bwd_weights)
      return Reason::no(spelling(n), " is no recurrent network");
    if (!is_real(n.compute) || n.compute == DType::f64)
      return Reason::no(spelling(n), " computes in ", n.compute, "; it can be computed in f32");
    for (const auto* list : {&n.in, &n.out})
      for (TensorId t : *list) {
        if (t == kNone) continue;
        const Tensor& x = r.graph->tensor(t);
        if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
        if (tsr::info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
      }
    return Reason::yes();
  }

  std::vector<Config> configs(const Region& r, const Device& d) const override {
    double memory = region_bytes(r) / d.bytes_per_second;
    double arithmetic = region_flops(r) / (kEfficiency * d.flops_per_second);
    return {Config{{}, std::max(memory, arithmetic) + d.step_seconds}};
  }

  std::unique_ptr<Step> build(const Region& r, const Config&, const Device&) const override {
    return std::make_unique<RnnStep>(*r.graph, r.graph->node(r.nodes[0]),
                                     region_flops(r) < kFewFlops ? 1 : thread_count());
  }
};

}  // namespace

const Engine& rnn_engine() {
  static const RnnEngine e;
  return e;
}

}  // namespace tsr::cpu
