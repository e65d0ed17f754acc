// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/fused/fused.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/composite/composite.hpp"
#include "engines/cpu/fused/group_reduce.hpp"
#include "engines/cpu/fused/program.hpp"

namespace tsr::cpu {
namespace {

// Part of the machine's multiply-adds that chains of pointwise operations reach.
constexpr double kEfficiency = 0.125;

class FusedStep : public Step {
 public:
  FusedStep(const Expr& e, const Graph& g, int threads) : program_(e, g, threads) {}
  size_t workspace_bytes() const override { return program_.workspace_bytes(); }
  bool may_overwrite(TensorId in, TensorId out) const override { return program_.may_overwrite(in, out); }
  void run(const StepArgs& a) const override { program_.run(a.tensors, a.workspace); }

 private:
  Program program_;
};

class FusedEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "fused_cpu", 2, DeviceKind::cpu, true,
        "pointwise and row-wise regions (norms, softmax, reductions), blocked and vectorised"};
    return kInfo;
  }
  Reason check(const Region& r, const Device& d) const override {
    if (reduces_groups(r)) return check_group_reduce(*r.graph, r.graph->node(r.nodes[0]));
    Reason why;
    if (make_composite(r, *this, d, false, why)) return why;
    Expr e;
    why = lower(r, &e);
    if (why && e.block > kBlock) return Reason::no("blocks of ", e.block, " elements, longer than ", kBlock);
    return why;
  }
  std::vector<Config> configs(const Region& r, const Device& d) const override {
    double memory = region_bytes(r) / d.bytes_per_second;
    double arithmetic = region_flops(r) / (kEfficiency * d.flops_per_second);
    return {Config{{{"block", kBlock}}, std::max(memory, arithmetic) + d.step_seconds}};
  }
  std::unique_ptr<Step> build(const Region& r, const Config&, const Device& d) const override {
    if (reduces_groups(r)) return make_group_reduce(*r.graph, r.graph->node(r.nodes[0]), thread_count());
    Reason built;
    if (auto c = make_composite(r, *this, d, true, built); c && built)
      return std::make_unique<CompositeStep>(std::move(c));
    Expr e;
    if (Reason why = lower(r, &e); !why)
      fail(Status::internal_error, "fused_cpu built a region that it declines: ", why.text());
    return std::make_unique<FusedStep>(e, *r.graph, thread_count());
  }
};

}  // namespace

const Engine& fused_engine() {
  static const FusedEngine e;
  return e;
}

}  // namespace tsr::cpu
