// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/attention.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/attention/score_mod.hpp"
#include "engines/cpu/attention/steps.hpp"

namespace tsr::cpu {
namespace {

using namespace tsr::attention;

// Fraction of the processor's f32 peak that long sequences reach, and what starting a step costs.
constexpr double kEfficiency = 0.8, kOverhead = 5e-6;

Reason check_node(const Graph& g, const Node& n) {
  if (n.compute == DType::f64) return Reason::no(spelling(n), " computes in f64; here f32 at most");
  if (Reason why = check_tensors(g, n); !why) return why;
  for (const tessera::Subgraph& sub : subgraphs(n))
    if (Reason why = check_score_mod(*sub, sdpa::shape(g, n).scores()); !why) return why;
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
