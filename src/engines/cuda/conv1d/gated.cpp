// SPDX-License-Identifier: Apache-2.0
// Steps of b2b_causal_conv1d and b2b_causal_conv1d_bwd.
#include <algorithm>

#include "engines/cuda/conv1d/sequences.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {
namespace {

using dev::GatedArgs;

class GatedStep : public SequenceStep {
 public:
  GatedStep(const Graph& g, const Node& n, const Device& d)
      : SequenceStep(g.tensor(n.in[0]).dims[0], g.tensor(n.in[0]).dims[1], g.tensor(n.in[0]).dims[3],
                     computes_wide(g, n), d),
        one_pass_(gated_in_one_pass(g, n)) {
    for (int c = 0; c < 3; ++c) {
      x_[c] = signal_of(g, n.in, 0, c);
      proj_[c] = filter_of(g, n.in, 1, false, c);
    }
    mixer_ = filter_of(g, n.in, 2, false);
    skip_ = per_channel_of(g, n.in, 3);
    if (n.op == &ops::b2b_causal_conv1d) {
      y_ = signal_of(g, n.out, 0);
      gated_ = signal_of(g, n.out, 1);
      plan_forward();
    } else {
      y_ = signal_of(g, n.in, 4);
      dy_ = signal_of(g, n.in, 5);
      for (int c = 0; c < 3; ++c) {
        dx_[c] = signal_of(g, n.out, 0, c);
        dproj_[c] = filter_of(g, n.out, 1, false, c);
      }
      dmixer_ = filter_of(g, n.out, 2, false);
      dskip_ = per_channel_of(g, n.out, 3);
      plan_backward();
    }
  }

 private:
  static constexpr int kMostChannels = 2;  // at once: three signals take many registers

  void plan_forward() {
    choose_access({x_[0], x_[1], x_[2], y_, gated_}, kMostChannels);
    if (one_pass_) {
      add_pass("gated.cuh", "gated_forward", {x_[0].type, proj_[0].type, mixer_.type, skip_.type, y_.type, gated_.type},
               proj_[0].taps);
      return;
    }
    p_[0] = temporary(), g_ = temporary();
    add_pass("gated_stages.cuh", "gated_project", {x_[0].type, proj_[0].type}, proj_[0].taps);
    add_pass("gated_stages.cuh", "gated_mix", {mixer_.type, skip_.type, y_.type, gated_.type}, mixer_.taps);
  }

  void plan_backward() {
    choose_access({x_[0], x_[1], x_[2], y_, dy_, dx_[0], dx_[1], dx_[2]}, one_pass_ ? 1 : kMostChannels);
    if (one_pass_) return plan_backward_in_one_pass();
    for (SignalPlan* s : {&p_[0], &p_[1], &p_[2], &g_, &e_}) *s = temporary();
    add_pass("gated_stages.cuh", "gated_start_back", {x_[0].type, proj_[0].type, y_.type, dy_.type}, proj_[0].taps);
    add_pass("gated_stages.cuh", "gated_mix_back", {mixer_.type, skip_.type}, mixer_.taps);
    add_pass("gated_stages.cuh", "gated_project_back", {proj_[0].type, dx_[0].type}, proj_[0].taps);
    // Tap 0 of the mixer's gradient is sum e g, the gradient of the skip.
    add_filter_gradient(g_, e_, dmixer_, dskip_, 0);
    for (int c = 0; c < 3; ++c) add_filter_gradient(x_[c], p_[c], dproj_[c], PerChannelPlan(), dproj_[c].taps);
  }

  void plan_backward_in_one_pass() {
    int64_t n = splits(share(splits_for_gradients()));
    for (int c = 0; c < 4; ++c)
      partials_[c] = reserve(n * channels_ * ((c < 3 ? proj_[0].taps : mixer_.taps) + 1) * lane_bytes());
    add_pass("gated.cuh", "gated_backward",
             {x_[0].type, proj_[0].type, mixer_.type, skip_.type, y_.type, dy_.type, dx_[0].type}, proj_[0].taps,
             splits_for_gradients(), sum_bytes(dev::kLongTaps));
    for (int c = 0; c < 3; ++c) add_sums(partials_[c], n, dproj_[c], PerChannelPlan(), dproj_[c].taps);
    add_sums(partials_[3], n, dmixer_, dskip_, 0);
  }

  void add_pass(const std::string& source, const std::string& name, std::initializer_list<DType> types, int taps,
                int64_t splits = 0, int64_t shared_bytes = 0) {
    std::string list;
    for (DType t : types) list += device_type(t) + ", ";
    KernelArgs<GatedArgs> bound;
    bound.args.share = share(splits);
    bind(bound);
    int64_t count = blocks(bound.args.share);
    add(source, "GatedArgs", cat(name, "<", list, lane(), shape(taps_at_once(taps))), count, shared_bytes,
        std::move(bound));
  }

  void bind(KernelArgs<GatedArgs>& bound) const {
    GatedArgs& a = bound.args;
    for (int c = 0; c < 3; ++c) {
      x_[c].bind(bound, a.x[c]);
      dx_[c].bind(bound, a.dx[c]);
      p_[c].bind(bound, a.p[c]);
      proj_[c].bind(bound, a.proj[c]);
    }
    y_.bind(bound, a.y);
    gated_.bind(bound, a.gated);
    dy_.bind(bound, a.dy);
    g_.bind(bound, a.g);
    e_.bind(bound, a.e);
    mixer_.bind(bound, a.mixer);
    skip_.bind(bound, a.skip);
    for (int c = 0; c < 4; ++c) bound.workspace(a.partials[c], static_cast<size_t>(partials_[c]));
  }

  SignalPlan x_[3], y_, gated_, dy_, dx_[3], p_[3], g_, e_;
  FilterPlan proj_[3], mixer_, dproj_[3], dmixer_;
  PerChannelPlan skip_, dskip_;
  int64_t partials_[4] = {};
  bool one_pass_;
};

}  // namespace

bool gated_in_one_pass(const Graph& g, const Node& n) {
  bool narrow = n.op == &ops::b2b_causal_conv1d || !computes_wide(g, n);  // gradients in f64 take too many registers
  return narrow && g.tensor(n.in[1]).dims[2] <= dev::kShortTaps && g.tensor(n.in[2]).dims[1] <= dev::kLongTaps;
}

std::unique_ptr<Step> make_gated_step(const Graph& g, const Node& n, const Device& d) {
  return std::make_unique<GatedStep>(g, n, d);
}

}  // namespace tsr::cuda
