// SPDX-License-Identifier: Apache-2.0
// What the steps of causal convolutions share on the host: signals in memory, how threads share them, and launches.
#pragma once

#include <string>
#include <vector>

#include "engines/cuda/conv1d/args.cuh"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/op.hpp"

namespace tsr::cuda {

// Sequences of a tensor, or of the workspace (without a tensor).
struct SignalPlan {
  TensorId id = kNone;
  DType type = DType::f32;
  int64_t offset = 0;  // elements of the tensor, bytes of the workspace
  int64_t steps[3] = {};
  int64_t alignment = 16;

  bool exists = false;
  // `field`: of the arguments of `to`.
  template <class Args>
  void bind(KernelArgs<Args>& to, dev::Signal& field) const {
    std::copy(std::begin(steps), std::end(steps), field.steps);
    if (id != kNone)
      to.pointer(field.data, id, offset * (info(type).bits / 8));
    else if (exists)
      to.workspace(field.data, static_cast<size_t>(offset));
  }
};

// The sequences of a slot: [b, d, l], or part `part` of [b, d, parts, l]. Nothing if the slot is empty.
SignalPlan signal_of(const Graph& g, const std::vector<TensorId>& slots, size_t slot, int part = -1);

struct FilterPlan {
  TensorId id = kNone;
  DType type = DType::f32;
  int64_t first = 0, steps[2] = {};
  int taps = 1;

  template <class Args>
  void bind(KernelArgs<Args>& to, dev::Filter& field) const {
    field = {nullptr, first, {steps[0], steps[1]}, taps};
    to.pointer(field.data, id);
  }
};
// [d, k], or part `part` of [d, parts, k]; the last tap meets the present unless the filter is reversed.
FilterPlan filter_of(const Graph& g, const std::vector<TensorId>& slots, size_t slot, bool reversed, int part = -1);

struct PerChannelPlan {
  TensorId id = kNone;
  DType type = DType::f32;
  int64_t step = 0;

  template <class Args>
  void bind(KernelArgs<Args>& to, dev::PerChannel& field) const {
    field.step = step;
    to.pointer(field.data, id);
  }
};
PerChannelPlan per_channel_of(const Graph& g, const std::vector<TensorId>& slots, size_t slot);

// In f64 where any tensor is, otherwise in f32.
bool computes_wide(const Graph& g, const Node& n);

// How the kernels of a step meet memory.
struct Access {
  bool channels_fast = false;  // channels lie side by side, not times
  int channels = 1;            // that a thread moves at once
  int times = 1;               // that a thread moves at once
};

class SequenceStep : public LaunchList {
 public:
  SequenceStep(int64_t batch, int64_t channels, int64_t length, bool wide, const Device& d)
      : device_(d), batch_(batch), channels_(channels), length_(length), wide_(wide) {}
  size_t workspace_bytes() const override { return workspace_; }

 protected:
  static constexpr int kStep = 8;  // times of a span
  static constexpr int kThreads = 128;
  static int taps_at_once(int taps) { return taps <= dev::kShortTaps ? taps : dev::kLongTaps; }

  // The widest access that all signals allow; `most` channels at once.
  void choose_access(const std::vector<SignalPlan>& signals, int most);
  const char* lane() const { return wide_ ? "double" : "float"; }
  DType lane_type() const { return wide_ ? DType::f64 : DType::f32; }
  SignalPlan temporary();                  // a signal in the workspace
  int64_t reserve(int64_t bytes);          // a piece of the workspace
  dev::Share share(int64_t splits) const;  // with 0 splits: a span for each thread
  int64_t blocks(const dev::Share& s) const { return s.channel_blocks.value * splits(s); }
  static int64_t splits(const dev::Share& s) {
    return s.spans_of_block == 0 ? 0 : (s.spans + s.spans_of_block - 1) / s.spans_of_block;
  }
  int64_t splits_for_gradients() const;
  // ", channels, times, taps, step>": how template arguments of kernels end
  std::string shape(int taps) const;

  template <class Args>
  void add(const std::string& source, const std::string& args_type, const std::string& body, int64_t blocks,
           int64_t shared_bytes, KernelArgs<Args> args) {
    if (blocks == 0) return;
    LaunchList::add(get(source, args_type, body),
                    Grid{.blocks = blocks, .threads = kThreads, .shared_bytes = shared_bytes}, std::move(args));
  }

  // Gradient of a filter from x and dz, and one sum more: that of dz (index taps) or of a tap.
  void add_filter_gradient(const SignalPlan& x, const SignalPlan& dz, const FilterPlan& dw, const PerChannelPlan& extra,
                           int extra_index);
  // Adds up [splits, channels, taps + 1] sums at this place of the workspace.
  void add_sums(int64_t partials, int64_t splits, const FilterPlan& dw, const PerChannelPlan& extra, int extra_index);
  int64_t sum_bytes(int taps_at_once) const;  // of shared memory that adding up in a block takes
  int64_t lane_bytes() const { return wide_ ? 8 : 4; }

  Device device_;
  int64_t batch_, channels_, length_;
  bool wide_;  // computed in f64
  Access access_;

 private:
  std::shared_ptr<const Kernel> get(const std::string& source, const std::string& args, const std::string& body) const;
  size_t workspace_ = 0;
};

std::unique_ptr<Step> make_causal_step(const Graph& g, const Node& n, const Device& d);
std::unique_ptr<Step> make_gated_step(const Graph& g, const Node& n, const Device& d);
// Does all between x and the results of a gated convolution stay in registers?
bool gated_in_one_pass(const Graph& g, const Node& n);

}  // namespace tsr::cuda
