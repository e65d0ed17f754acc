// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/fused/fused.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/fused/group_reduce.hpp"
#include "engines/cpu/program/program.hpp"

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
  Matched match(const Region& r, const Device& d) const override {
    const Graph& g = *r.graph;
    Config config{{{"block", kBlock}}, roofline(r, d, kEfficiency) + d.step_seconds};
    if (reduces_groups(r)) {
      const Node& n = g.node(r.nodes[0]);
      if (Reason why = check_group_reduce(g, n); !why) return why;
      return one_way(config, [&g, &n] { return make_group_reduce(g, n, thread_count()); });
    }
    Expr e;
    if (Reason why = lower(r, &e); !why) return why;
    if (e.block > kBlock) return Reason::no("blocks of ", e.block, " elements, longer than ", kBlock);
    return one_way(config, [e = std::move(e), &g] { return std::make_unique<FusedStep>(e, g, thread_count()); });
  }
};

}  // namespace

const Engine& fused_engine() {
  static const FusedEngine e;
  return e;
}

}  // namespace tsr::cpu
