// SPDX-License-Identifier: Apache-2.0
// Steps of causal_conv1d and causal_conv1d_bwd.
#include "engines/cuda/conv1d/sequences.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {
namespace {

using dev::CausalArgs;

class CausalStep : public SequenceStep {
 public:
  CausalStep(const Graph& g, const Node& n, const Device& d)
      : SequenceStep(g.tensor(n.in[0]).dims[0], g.tensor(n.in[0]).dims[1], g.tensor(n.in[0]).dims[2],
                     computes_wide(g, n), d) {
    const auto& o = attrs<tessera::CausalConvOptions>(n);
    silu_ = o.activation == tessera::CausalActivation::silu;
    x_ = signal_of(g, n.in, 0);
    w_ = filter_of(g, n.in, 1, o.reversed);
    if (n.op == &ops::causal_conv1d) {
      bias_ = per_channel_of(g, n.in, 2);
      out_ = signal_of(g, n.out, 0);
      plan_forward();
    } else {
      dy_ = signal_of(g, n.in, 2);
      bias_ = per_channel_of(g, n.in, 3);
      out_ = signal_of(g, n.out, 0);
      dw_ = filter_of(g, n.out, 1, o.reversed);
      dbias_ = per_channel_of(g, n.out, 2);
      plan_backward();
    }
  }

 private:
  void plan_forward() {
    choose_access({x_, out_}, 4);
    add_pass("causal_forward", {x_.type, w_.type, bias_.type, out_.type}, x_, SignalPlan(), out_);
  }

  void plan_backward() {
    // One pass keeps x, dz and all sums in registers, which leaves room for few channels.
    bool one_pass = w_.taps <= dev::kLongTaps;
    choose_access({x_, dy_, out_}, one_pass ? 2 : 4);
    if (one_pass) return plan_one_pass();
    SignalPlan dz = dy_;
    if (silu_) {
      dz = temporary();
      add_pass("causal_slope", {x_.type, w_.type, bias_.type, dy_.type}, x_, dy_, dz);
    }
    add_pass("causal_turned", {dz.type, w_.type, out_.type}, x_, dz, out_);
    add_filter_gradient(x_, dz, dw_, dbias_, dw_.taps);
  }

  void plan_one_pass() {
    int taps = taps_at_once(w_.taps);
    KernelArgs<CausalArgs> bound = arguments(splits_for_gradients(), x_, dy_, out_);
    const CausalArgs& a = bound.args;
    int64_t n = splits(a.share), partials = reserve(n * channels_ * (w_.taps + 1) * lane_bytes());
    std::string types;
    for (DType t : {x_.type, w_.type, bias_.type, dy_.type, out_.type}) types += device_type(t) + ", ";
    bound.workspace(bound.args.partials, static_cast<size_t>(partials));
    add("causal.cuh", "CausalArgs", cat("causal_backward<", types, lane(), shape(taps)), blocks(a.share),
        sum_bytes(taps), std::move(bound));
    add_sums(partials, n, dw_, dbias_, dw_.taps);
  }

  // A kernel that gives each time of `out` from the times around it.
  void add_pass(const std::string& name, std::initializer_list<DType> types, const SignalPlan& x, const SignalPlan& dy,
                const SignalPlan& out) {
    std::string list;
    for (DType t : types) list += device_type(t) + ", ";
    KernelArgs<CausalArgs> bound = arguments(0, x, dy, out);
    int64_t count = blocks(bound.args.share);
    add("causal.cuh", "CausalArgs", cat(name, "<", list, lane(), shape(taps_at_once(w_.taps))), count, 0,
        std::move(bound));
  }

  KernelArgs<CausalArgs> arguments(int64_t splits, const SignalPlan& x, const SignalPlan& dy,
                                   const SignalPlan& out) const {
    KernelArgs<CausalArgs> bound;
    CausalArgs& a = bound.args;
    a.share = share(splits);
    a.silu = silu_;
    x.bind(bound, a.x);
    dy.bind(bound, a.dy);
    out.bind(bound, a.out);
    w_.bind(bound, a.w);
    bias_.bind(bound, a.bias);
    return bound;
  }

  bool silu_;
  SignalPlan x_, dy_, out_;
  FilterPlan w_, dw_;
  PerChannelPlan bias_, dbias_;
};

}  // namespace

std::unique_ptr<Step> make_causal_step(const Graph& g, const Node& n, const Device& d) {
  return std::make_unique<CausalStep>(g, n, d);
}

}  // namespace tsr::cuda
