// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/special/special.hpp"

#include <algorithm>

#include "engines/cuda/launches.hpp"
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
        "local normalisation, spatial transformers, aggregation over graphs, CTC, reductions by a sub-graph"};
    return kInfo;
  }
  Reason check(const Region& r, const Device&) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    const Family* f = find_family(n.op);
    if (!f) return Reason::no(spelling(n), " has no kernel of its own");
    if (r.nodes.size() != 1) return Reason::no(spelling(n), " runs alone");
    if (Reason why = check_elements(r); !why) return why;
    return f->check ? f->check(r) : Reason::yes();
  }
  std::vector<Config> configs(const Region& r, const Device& d) const override {
    // Simple kernels: several launches, and each value is read more than once.
    constexpr double kSteps = 4;
    double memory = 2 * region_bytes(r) / d.bytes_per_second, arithmetic = region_flops(r) / (0.1 * d.flops_per_second);
    return {Config{{}, memory + arithmetic + kSteps * d.step_seconds}};
  }
  std::unique_ptr<Step> build(const Region& r, const Config&, const Device& d) const override {
    return find_family(r.graph->node(r.nodes[0]).op)->build(r, d);
  }
};

}  // namespace

const Engine& special_engine() {
  static const SpecialEngine e;
  return e;
}

}  // namespace tsr::cuda
