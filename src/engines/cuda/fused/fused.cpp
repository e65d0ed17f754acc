// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/fused/fused.hpp"

#include <algorithm>

#include "engines/composite/composite.hpp"
#include "engines/composite/moved.hpp"
#include "engines/cuda/fused/program.hpp"

namespace tsr::cuda {
namespace {

class FusedStep : public Step {
 public:
  FusedStep(const Expr& e, const Graph& g, const Device& d) : program_(e, g, d) {}
  size_t workspace_bytes() const override { return program_.workspace_bytes(); }
  int kernels() const override { return program_.kernels(); }
  bool may_overwrite(TensorId in, TensorId out) const override { return program_.may_overwrite(in, out); }
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
    Expr e;
    Reason why = express(r, d, e);
    if (why) return why;
    Reason composite;
    return several(r, d, false, composite) ? composite : why;
  }
  std::vector<Config> configs(const Region& r, const Device& d) const override {
    Expr e;
    Reason plain = express(r, d, e), why;
    if (!plain)
      if (auto moved = make_moved(r, *this, d, false, why)) return {Config{{}, moved->seconds()}};
    double bytes = region_bytes(r) + (plain ? scattered_bytes(e, *r.graph) : 0);
    double memory = bytes / d.bytes_per_second, arithmetic = region_flops(r) / (0.25 * d.flops_per_second);
    return {Config{{}, std::max(memory, arithmetic) + d.step_seconds}};
  }
  std::unique_ptr<Step> build(const Region& r, const Config&, const Device& d) const override {
    Expr e;
    if (Reason why = express(r, d, e); why) return std::make_unique<FusedStep>(e, *r.graph, d);
    Reason built;
    auto c = several(r, d, true, built);
    if (!c || !built) fail(Status::internal_error, "fused_cuda built a region that it declines: ", built.text());
    return std::make_unique<CompositeStep>(std::move(c));
  }

 private:
  // What is not one expression but a few, or one between movements.
  std::unique_ptr<Composite> several(const Region& r, const Device& d, bool build, Reason& why) const {
    auto moved = make_moved(r, *this, d, build, why);
    return moved ? std::move(moved) : make_composite(r, *this, d, build, why);
  }
  static Reason express(const Region& r, const Device& d, Expr& e) {
    if (Reason why = lower(r, &e, true); !why) return why;
    return check_program(e, *r.graph, d);
  }
};

}  // namespace

const Engine& fused_engine() {
  static const FusedEngine e;
  return e;
}

}  // namespace tsr::cuda
