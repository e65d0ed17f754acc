// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/attention.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/attention/score_mod.hpp"
#include "engines/cpu/attention/steps.hpp"
#include "graph/ragged.hpp"

namespace tsr::cpu {
namespace {

// Fraction of the processor's f32 peak that long sequences reach, and what starting a step costs.
constexpr double kEfficiency = 0.8, kOverhead = 5e-6;

bool is_forward(const Node& n) { return n.op->name == "sdpa_fwd"; }
bool is_backward(const Node& n) { return n.op->name == "sdpa_bwd"; }

Reason check_tensor(const Graph& g, TensorId id, bool sequence) {
  const Tensor& t = g.tensor(id);
  if (info(t.dtype).bits < 8) return Reason::no("tensor ", describe(t), " packs several elements into a byte");
  if (info(t.dtype).vector > 1) return Reason::no("tensor ", describe(t), " is vectorised");
  if (t.ragged == kNone) return Reason::yes();
  if (!sequence)
    return Reason::no("tensor ", describe(t),
                      " is ragged; here only q, k, v, o, statistics, their "
                      "gradients and page tables may be");
  if (ragged_axis(t) != 2) return Reason::no("tensor ", describe(t), " is ragged along dimension 3");
  return Reason::yes();
}

// Lengths, prefix sums and the like are read along one dimension.
Reason check_numbers(const Graph& g, const Node& n, int slot) {
  if (!sdpa::has(n, slot)) return Reason::yes();
  const Tensor& t = g.tensor(n.in[static_cast<size_t>(slot)]);
  if (std::count_if(t.dims.begin(), t.dims.end(), [](int64_t d) { return d > 1; }) > 1)
    return Reason::no("tensor ", describe(t), " spreads its numbers over several dimensions");
  return Reason::yes();
}

// Tensors that may be ragged.
std::vector<int> sequence_inputs(const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  std::vector<int> y = {s.q, s.k, s.v, s.page_table_k, s.page_table_v};
  if (is_backward(n)) y.insert(y.end(), {sdpa::bwd::kO, sdpa::bwd::kDo, sdpa::bwd::kStats, sdpa::bwd::kDelta});
  return y;
}

Reason check_tensors(const Graph& g, const Node& n) {
  std::vector<int> sequences = sequence_inputs(n);
  for (int slot = 0; slot < static_cast<int>(n.in.size()); ++slot) {
    if (!sdpa::has(n, slot)) continue;
    bool sequence = std::find(sequences.begin(), sequences.end(), slot) != sequences.end();
    if (Reason why = check_tensor(g, n.in[static_cast<size_t>(slot)], sequence); !why) return why;
  }
  int last = is_forward(n) ? int{sdpa::fwd::kSumExp} : int{sdpa::bwd::kDv};
  for (int slot = 0; slot < static_cast<int>(n.out.size()); ++slot) {
    TensorId id = n.out[static_cast<size_t>(slot)];
    if (id == kNone) continue;
    if (Reason why = check_tensor(g, id, slot <= last); !why) return why;
  }
  for (TensorId id : n.captures)
    if (Reason why = check_tensor(g, id, false); !why) return why;
  return Reason::yes();
}

Reason check_node(const Graph& g, const Node& n) {
  if (n.compute == DType::f64) return Reason::no(spelling(n), " computes in f64; here f32 at most");
  if (Reason why = check_tensors(g, n); !why) return why;
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.seq_len_q, s.seq_len_kv, s.cu_seq_len_q, s.cu_seq_len_kv})
    if (Reason why = check_numbers(g, n, slot); !why) return why;
  for (const tessera::Subgraph& sub : subgraphs(n))
    if (Reason why = attention::check_score_mod(*sub, sdpa::shape(g, n).scores()); !why) return why;
  return Reason::yes();
}

class AttentionEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"attention_cpu", 5, DeviceKind::cpu, true,
                                         "attention in tiles: linear memory, every mask, ragged and paged sequences"};
    return kInfo;
  }
  Reason check(const Region& r, const Device&) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    if (!is_forward(n) && !is_backward(n)) return Reason::no(spelling(n), " is not attention");
    if (r.nodes.size() > 1) return Reason::no(spelling(n), " runs alone");
    return check_node(*r.graph, n);
  }
  std::vector<Config> configs(const Region& r, const Device& d) const override {
    double memory = region_bytes(r) / d.bytes_per_second;
    double arithmetic = region_flops(r) / (kEfficiency * d.flops_per_second);
    return {Config{{}, std::max(memory, arithmetic) + kOverhead}};
  }
  std::unique_ptr<Step> build(const Region& r, const Config&, const Device&) const override {
    bool forward = is_forward(r.graph->node(r.nodes[0]));
    return forward ? attention::make_forward(r, thread_count()) : attention::make_backward(r, thread_count());
  }
};

}  // namespace

const Engine& attention_engine() {
  static const AttentionEngine e;
  return e;
}

}  // namespace tsr::cpu
