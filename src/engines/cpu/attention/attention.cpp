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
  Matched match(const Region& r, const Device& d) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    if (!is_forward(n) && !is_backward(n)) return Reason::no(spelling(n), " is not attention");
    if (r.nodes.size() > 1) return Reason::no(spelling(n), " runs alone");
    if (Reason why = check_node(*r.graph, n); !why) return why;
    return one_way(roofline(r, d, kEfficiency) + kOverhead, [&r, forward = is_forward(n)] {
      return forward ? attention::make_forward(r, thread_count()) : attention::make_backward(r, thread_count());
    });
  }
};

}  // namespace

const Engine& attention_engine() {
  static const AttentionEngine e;
  return e;
}

}  // namespace tsr::cpu
