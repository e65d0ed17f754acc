// SPDX-License-Identifier: Apache-2.0
// One execution of a recurrent network: the launches of its forward pass and, where gradients are wanted, of its
// backward pass.
#pragma once

#include "engines/cuda/rnn/network.hpp"

namespace tsr::cuda {

class RnnExecution {
 public:
  // With `dry` nothing is launched.
  RnnExecution(const RnnNetwork& n, const RnnMemory& memory, void* stream, bool dry)
      : n_(n), w_(n.w_), memory_(memory), stream_(stream), dry_(dry) {}
  void run();
  int launches() const { return launches_; }

 private:
  void forward();
  // Calls both for each direction; where directions are paired, the steps run between them.
  template <class Begin, class End>
  void for_directions(const Begin& begin, const End& end);
  void begin_forward(int64_t layer, int64_t direction);
  void end_forward(int64_t layer, int64_t direction);
  void backward();
  void begin_backward(int64_t layer, int64_t direction, size_t dy);
  void end_backward(int64_t layer, int64_t direction, size_t dx);
  void input_gradients(int64_t layer, int64_t direction, size_t dx);
  void weight_gradients(int64_t layer, int64_t direction);

  void* at(size_t offset) const { return memory_.workspace + offset; }
  // Input of a layer; that of layer `layers` is the output of the network.
  void* sequence(int64_t layer) const;
  // Element of the flat weights.
  const void* weight(int64_t element) const;
  const void* bias(const RnnPart& p) const;
  void* dweight(int64_t element) const;
  dev::RnnSequences sequences() const;
  dev::RnnStepArgs step_args(int64_t layer, int64_t direction) const;

  template <class Args>
  void launch(const std::shared_ptr<const Kernel>& kernel, int64_t blocks, const Args& args, int64_t shared = 0);
  template <class Args>
  void launch_each(const std::shared_ptr<const Kernel>& kernel, int64_t elements, const Args& args);
  // Between tensors of the node and rows.
  void move_sequence(const RnnNetwork::Table& t, size_t rows);
  void move_state(const RnnNetwork::Table& t, int64_t state, int64_t width, size_t rows);
  void move_weights(const RnnNetwork::Table& t, size_t rows, int64_t first = 0);
  void move(const RnnNetwork::Table& t, dev::RnnTableArgs args);

  void drop(RnnNetwork::Kernels which, int64_t layer, void* rows);
  void skip(RnnNetwork::Kernels which, int64_t direction, void* x, size_t gates);
  void multiply(RnnNetwork::Kernels which, dev::RnnProductArgs args);
  void sum_columns(const dev::RnnSumArgs& args);
  void step(RnnNetwork::Kernels which, int64_t units, int64_t units_per_block, const dev::RnnStepArgs& args,
            int64_t shared);
  // All steps of a direction: `states` are those that the first one multiplies, null for zeros.
  void steps_forward(int64_t direction, dev::RnnStepArgs args);
  void steps_backward(int64_t direction, dev::RnnStepArgs args);
  void steps_on_tensor_cores(int64_t direction, bool backward, const dev::RnnStepArgs& args, const void* states);
  void pack_weights(RnnNetwork::Kernels which, const void* from, size_t to, int64_t unit_stride, int64_t depth_stride);
  void pack_states(const RnnShape& s, int64_t depth, const void* from, const size_t (&to)[2]);

  const RnnNetwork& n_;
  const RnnWeights& w_;
  RnnMemory memory_;
  void* stream_;
  bool dry_;
  int launches_ = 0;
  dev::RnnPairArgs pair_{};
};

}  // namespace tsr::cuda
