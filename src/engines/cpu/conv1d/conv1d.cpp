// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/conv1d/conv1d.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/conv1d/sequences.hpp"

namespace tsr::cpu {
namespace {

// Part of the machine's multiply-adds that short filters reach.
constexpr double kEfficiency = 0.2;
// How many times as long memory takes where neighbouring times lie apart.
constexpr double kApart = 8;
// Channels that one thread takes at a time: where they lie side by side in memory they share its lines.
constexpr int64_t kChannels = 16;

class Conv1dStep : public Step {
 public:
  Conv1dStep(const Graph& g, const Node& n, int threads) : work_(make_sequence_work(g, n)), threads_(threads) {}
  size_t workspace_bytes() const override { return each() * static_cast<size_t>(threads_); }
  void run(const StepArgs& a) const override {
    int64_t share = work_->channels() / std::max(1, threads_);
    parallel_for(work_->channels(), std::clamp<int64_t>(share, 1, kChannels), threads_,
                 [&](int64_t first, int64_t last, int worker) {
                   for (int64_t c = first; c < last; ++c)
                     work_->run(a.tensors, c, a.workspace + each() * static_cast<size_t>(worker));
                 });
  }

 private:
  size_t each() const { return (work_->scratch_bytes() + 255) / 256 * 256; }
  std::unique_ptr<SequenceWork> work_;
  int threads_;
};

class Conv1dEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"conv1d_cpu", 7, DeviceKind::cpu, true,
                                         "causal convolutions along sequences and their gradients, computed in f32"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("a causal convolution runs alone");
    const Node& n = r.graph->node(r.nodes[0]);
    if (n.op->name.find("causal_conv1d") == std::string_view::npos)
      return Reason::no(spelling(n), " is no causal convolution");
    if (!is_real(n.compute) || n.compute == DType::f64)
      return Reason::no(spelling(n), " computes in ", n.compute, "; here it is computed in f32");
    for (const auto* list : {&n.in, &n.out})
      for (TensorId t : *list) {
        if (t == kNone) continue;
        const Tensor& x = r.graph->tensor(t);
        if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
        if (tsr::info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
        if (x.dtype == DType::f64) return Reason::no("tensor ", describe(x), " is wider than f32");
      }
    const Tensor& x = r.graph->tensor(n.in[0]);
    double memory = region_bytes(r) / d.bytes_per_second * (x.strides.back() == 1 ? 1 : kApart);
    double arithmetic = region_flops(r) / (kEfficiency * d.rates.f32);
    return one_way(std::max(memory, arithmetic) + d.step_seconds,
                   [&g = *r.graph, &n] { return std::make_unique<Conv1dStep>(g, n, thread_count()); });
  }
};

}  // namespace

const Engine& conv1d_engine() {
  static const Conv1dEngine e;
  return e;
}

}  // namespace tsr::cpu
