// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/fused/fused.hpp"

#include <algorithm>

#include "engines/composite/composite.hpp"
#include "engines/cuda/fused/program.hpp"

namespace tsr::cuda {
namespace {

class FusedStep : public Step {
 public:
  FusedStep(const Expr& e, const Graph& g, const Device& d) : program_(e, g, d) {}
  size_t workspace_bytes() const override { return program_.workspace_bytes(); }
  int kernels() const override { return program_.kernels(); }
  void run(const StepArgs& a) const override { program_.run(a.tensors, a.workspace, a.stream); }

 private:
  FusedProgram program_;
};

class FusedEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "fused_cuda", 102, DeviceKind::cuda, true,
        "pointwise and row-wise regions (norms, softmax, reductions) in one generated kernel"};
    return kInfo;
  }
  Reason check(const Region& r, const Device& d) const override {
    Reason why_not;
    if (make_composite(r, *this, d, false, why_not)) return why_not;
    Expr e;
    if (Reason why = lower(r, &e); !why) return why;
    if (Reason why = check_code(e, *r.graph); !why) return why;
    Layout l;
    return make_layout(e, *r.graph, &l);
  }
  std::vector<Config> configs(const Region& r, const Device& d) const override {
    double memory = region_bytes(r) / d.bytes_per_second, arithmetic = region_flops(r) / (0.25 * d.flops_per_second);
    return {Config{{}, std::max(memory, arithmetic) + d.step_seconds}};
  }
  std::unique_ptr<Step> build(const Region& r, const Config&, const Device& d) const override {
    Reason built;
    if (auto c = make_composite(r, *this, d, true, built); c && built)
      return std::make_unique<CompositeStep>(std::move(c));
    Expr e;
    if (Reason why = lower(r, &e); !why)
      fail(Status::internal_error, "fused_cuda built a region that it declines: ", why.text());
    return std::make_unique<FusedStep>(e, *r.graph, d);
  }
};

}  // namespace

const Engine& fused_engine() {
  static const FusedEngine e;
  return e;
}

}  // namespace tsr::cuda
