// SPDX-License-Identifier: Apache-2.0
// One execution of a recurrent network: the launches of its forward pass and, where gradients are wanted, of its
// backward pass.
#pragma once

#include "engines/cuda/rnn/network.hpp"

namespace tsr::cuda {

class RnnExecution {
 public:
  RnnExecution(const RnnNetwork& n, const StepArgs& a, bool dry) : n_(n), w_(n.w_), a_(a), dry_(dry) {}
  void run();
  int launches() const { return launches_; }

 private:
  void forward();
  void forward_direction(int64_t layer, int64_t direction);
  void backward();
  void backward_direction(int64_t layer, int64_t direction, size_t dy, size_t dx);
  void input_gradients(int64_t layer, int64_t direction, size_t dx);
  void weight_gradients(int64_t layer, int64_t direction);

  void* at(size_t offset) const { return a_.workspace + offset; }
  // Element of the flat weights.
  const void* weight(int64_t element) const;
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
  void move_weights(const RnnNetwork::Table& t, size_t rows);
  void move(const RnnNetwork::Table& t, dev::RnnTableArgs args);

  void drop(int64_t layer, size_t rows);
  void skip(RnnNetwork::Kernels which, int64_t direction, size_t x, const RnnTape& tape);
  void multiply(dev::RnnProductArgs args);
  void sum_columns(const void* rows, int64_t stride, const RnnPart& to);
  void step(RnnNetwork::Kernels which, int64_t units, int64_t units_per_block, const dev::RnnStepArgs& args,
            int64_t shared);

  const RnnNetwork& n_;
  const RnnWeights& w_;
  const StepArgs& a_;
  bool dry_;
  int launches_ = 0;
};

}  // namespace tsr::cuda
