// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/special/special.hpp"

#include <algorithm>

#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {
namespace {

struct Family {
  std::vector<const OpSpec*> operations;
  std::unique_ptr<Step> (*build)(const Region& r, const Device& d);
  Reason (*check)(const Region& r) = nullptr;  // beyond what all need
};

const Family* find_family(const OpSpec* op) {
  static const Family kFamilies[] = {
      {{&ops::lrn, &ops::lrn_bwd, &ops::divisive_norm, &ops::divisive_norm_bwd}, build_local_norm},
      {{&ops::grid_sample, &ops::grid_sample_bwd, &ops::affine_grid, &ops::affine_grid_bwd}, build_sampling},
      {{&ops::gnn_agg, &ops::gnn_agg_bwd}, build_aggregation, check_aggregation},
      {{&ops::ctc_loss}, build_ctc, check_ctc},
      {{&ops::reduce_by}, build_reduce_by, check_reduce_by},
      {{&ops::gather}, build_gather},
      {{&ops::scatter_add}, build_scatter_add, check_scatter_add},
      {{&ops::cumsum}, build_cumsum},
      {{&ops::top_k}, build_top_k, check_top_k},
  };
  for (const Family& f : kFamilies)
    if (std::find(f.operations.begin(), f.operations.end(), op) != f.operations.end()) return &f;
  return nullptr;
}

class SpecialEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "special_cuda", 109, DeviceKind::cuda, true,
        "local normalisation, spatial transformers, aggregation over graphs, CTC, reductions by a sub-graph, rows by "
        "index, running sums, largest elements"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    const Family* f = find_family(n.op);
    if (!f) return Reason::no(spelling(n), " has no kernel of its own");
    if (r.nodes.size() != 1) return Reason::no(spelling(n), " runs alone");
    if (Reason why = check_elements(r); !why) return why;
    if (f->check)
      if (Reason why = f->check(r); !why) return why;
    // Simple kernels: several launches, and each value is read more than once.
    constexpr double kSteps = 4;
    double memory = 2 * region_bytes(r) / d.bytes_per_second, arithmetic = region_flops(r) / (0.1 * d.rates.f32);
    return one_way(memory + arithmetic + kSteps * d.step_seconds, [f, &r, &d] { return f->build(r, d); });
  }
};

}  // namespace

std::string exact_lane(DType t) {
  if (t == DType::f64) return "double";
  return is_integer(t) ? "i64" : "float";
}

const Engine& special_engine() {
  static const SpecialEngine e;
  return e;
}

}  // namespace tsr::cuda
