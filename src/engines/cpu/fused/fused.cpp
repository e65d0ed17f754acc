// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/fused/fused.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/fused/program.hpp"

namespace tsr::cpu {
namespace {

// Elements that are worth waking another thread for.
constexpr int64_t kGrain = 32 * 1024;

class FusedStep : public Step {
 public:
  FusedStep(const Expr& e, const Graph& g, int threads) : program_(e, g), threads_(threads) {}

  size_t workspace_bytes() const override { return program_.scratch_bytes() * static_cast<size_t>(threads_); }

  void run(const StepArgs& a) const override {
    size_t each = program_.scratch_bytes();
    if (program_.row_length() == 0 || program_.rows() == 0) return run_empty(a);
    if (program_.has_reduction()) {
      // Whole blocks of neighbouring rows, where rows run side by side.
      int64_t columns = program_.columns(), grain = (kGrain / program_.row_length() + columns) / columns * columns;
      parallel_for(program_.rows(), grain, threads_, [&](int64_t first, int64_t last, int worker) {
        program_.run_rows(a.tensors, first, last, a.workspace + static_cast<size_t>(worker) * each);
      });
    } else {
      parallel_for(program_.row_length(), kGrain, threads_, [&](int64_t first, int64_t last, int worker) {
        program_.run_elements(a.tensors, first, last, a.workspace + static_cast<size_t>(worker) * each);
      });
    }
  }

 private:
  // Rows without elements still have row values (the sum of nothing is 0).
  void run_empty(const StepArgs& a) const {
    if (program_.has_reduction()) program_.run_rows(a.tensors, 0, program_.rows(), a.workspace);
  }

  Program program_;
  int threads_;
};

class FusedEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "fused_cpu", 2, DeviceKind::cpu, true,
        "pointwise and row-wise regions (norms, softmax, reductions), blocked and vectorised"};
    return kInfo;
  }
  Reason check(const Region& r, const Device&) const override { return lower(r, nullptr); }
  std::vector<Config> configs(const Region& r, const Device& d) const override {
    double memory = region_bytes(r) / d.bytes_per_second, arithmetic = 8 * region_flops(r) / d.flops_per_second;
    return {Config{{{"block", kBlock}}, std::max(memory, arithmetic) + 1e-6}};
  }
  std::unique_ptr<Step> build(const Region& r, const Config&, const Device&) const override {
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
