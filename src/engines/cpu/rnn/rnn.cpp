// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/rnn/rnn.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/rnn/network.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

// Part of the machine's multiply-adds that a network of useful size reaches.
constexpr double kEfficiency = 0.83;
constexpr double kFewFlops = 1e6;  // not worth waking another thread

class RnnStep : public Step {
 public:
  RnnStep(const Region& r, const Node& n, int threads)
      : network_(attrs<tessera::RnnOptions>(n), rnn_tensors(r),
                 n.op == &ops::rnn_fwd ? Network::Pass::forward : Network::Pass::backward, threads) {}
  size_t workspace_bytes() const override { return network_.workspace_bytes(); }
  void run(const StepArgs& a) const override { network_.run(a.tensors, a.workspace); }

 private:
  Network network_;
};

class RnnEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"rnn_cpu", 10, DeviceKind::cpu, true,
                                         "recurrent networks, forward and backward, computed in f32"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_rnn_region(r); !why) return why;
    const Node& n = r.graph->node(r.nodes[0]);
    if (!is_real(n.compute) || n.compute == DType::f64)
      return Reason::no(spelling(n), " computes in ", n.compute, "; it can be computed in f32");
    return one_way(roofline(r, d, kEfficiency) + d.step_seconds, [&r, &n] {
      return std::make_unique<RnnStep>(r, n, region_flops(r) < kFewFlops ? 1 : thread_count());
    });
  }
};

}  // namespace

const Engine& rnn_engine() {
  static const RnnEngine e;
  return e;
}

}  // namespace tsr::cpu
