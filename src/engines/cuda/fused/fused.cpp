// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/fused/fused.hpp"

#include <algorithm>

#include "engines/cuda/fused/program.hpp"

namespace tsr::cuda {
namespace {

constexpr double kEfficiency = 0.25;  // part of the f32 multiply-adds that generated kernels reach

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
  Matched match(const Region& r, const Device& d) const override {
    Expr e;
    if (Reason why = lower(r, &e, true); !why) return why;
    if (Reason why = check_program(e, *r.graph, d); !why) return why;
    double memory = (region_bytes(r) + scattered_bytes(e, *r.graph)) / d.bytes_per_second;
    double seconds = std::max(memory, region_flops(r) / (kEfficiency * d.rates.f32)) + d.step_seconds;
    return one_way(seconds, [e = std::move(e), &g = *r.graph, &d] { return std::make_unique<FusedStep>(e, g, d); });
  }
};

}  // namespace

const Engine& fused_engine() {
  static const FusedEngine e;
  return e;
}

}  // namespace tsr::cuda
