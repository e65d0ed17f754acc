// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/index/index.hpp"

#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

bool handles(const Node& n) {
  return n.op == &ops::gather || n.op == &ops::scatter_add || n.op == &ops::cumsum || n.op == &ops::top_k;
}

Reason check_tensor(const Tensor& t) {
  if (info(t.dtype).bits < 8) return Reason::no("tensor ", describe(t), " packs elements into bytes");
  if (info(t.dtype).vector > 1) return Reason::no("tensor ", describe(t), " is vectorised");
  if (t.reordering != Reordering::none) return Reason::no("tensor ", describe(t), " is reordered");
  if (t.ragged != kNone) return Reason::no("tensor ", describe(t), " is ragged");
  if (is_complex(t.dtype)) return Reason::no("tensor ", describe(t), " is complex");
  if (t.dtype == DType::e8m0) return Reason::no("tensor ", describe(t), " has no zero");
  return Reason::yes();
}

class IndexEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"index_cpu", 12, DeviceKind::cpu, true,
                                         "rows by index and sums into them, running sums, the largest elements"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (!handles(n)) return Reason::no(spelling(n), " neither follows an index nor sums along an axis");
    if (r.nodes.size() != 1) return Reason::no(spelling(n), " runs alone");
    for (const auto* list : {&r.inputs, &r.outputs})
      for (TensorId t : *list)
        if (Reason why = check_tensor(g.tensor(t)); !why) return why;
    // Elements are handled a few at a time: about four times what a copy takes.
    constexpr double kPasses = 4;
    double seconds = kPasses * region_bytes(r) / d.bytes_per_second + d.step_seconds;
    return one_way(seconds, [&g, &r, &n]() -> std::unique_ptr<Step> {
      if (n.op == &ops::gather) return make_gather(g, n);
      if (n.op == &ops::scatter_add) return make_scatter_add(g, n);
      if (n.op == &ops::cumsum) return make_cumsum(g, n);
      return make_top_k(g, r, n);
    });
  }
};

}  // namespace

const Engine& index_engine() {
  static const IndexEngine e;
  return e;
}

}  // namespace tsr::cpu
