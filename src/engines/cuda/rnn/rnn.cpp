// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/rnn.hpp"

#include "engines/cuda/rnn/network.hpp"

namespace tsr::cuda {
namespace {

// Part of the machine's multiply-adds that the simple products reach.
constexpr double kEfficiency = 0.15;

class RnnStep : public Step {
 public:
  RnnStep(const Region& r, const Device& d) : network_(r, d), launches_(network_.run({}, true)) {}
  size_t workspace_bytes() const override { return network_.workspace_bytes(); }
  int kernels() const override { return launches_; }
  void run(const StepArgs& a) const override { network_.run(a); }

 private:
  RnnNetwork network_;
  int launches_;
};

class RnnEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"rnn_cuda", 110, DeviceKind::cuda, true,
                                         "recurrent networks, forward and backward"};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    if (Reason why = check_rnn_region(r); !why) return why;
    if (Reason why = check_elements(r); !why) return why;
    const auto& o = attrs<tessera::RnnOptions>(r.graph->node(r.nodes[0]));
    auto steps = static_cast<double>(rnn_extent(o, rnn_tensors(r)).steps * o.layers) * (o.bidirectional ? 2 : 1) *
                 (o.proj > 0 ? 2 : 1);
    double memory = region_bytes(r) / d.bytes_per_second, arithmetic = region_flops(r) / (kEfficiency * d.rates.f32);
    return one_way(memory + arithmetic + (steps + 1) * d.step_seconds,
                   [&r, &d] { return std::make_unique<RnnStep>(r, d); });
  }
};

}  // namespace

const Engine& rnn_engine() {
  static const RnnEngine e;
  return e;
}

}  // namespace tsr::cuda
