// SPDX-License-Identifier: Apache-2.0
// The work of a causal convolution on one channel; all arithmetic in f32 on rows of the workspace.
#pragma once

#include <memory>

#include "graph/op.hpp"

namespace tsr::cpu {

class SequenceWork {
 public:
  virtual ~SequenceWork() = default;
  int64_t channels() const { return channels_; }
  size_t scratch_bytes() const { return scratch_; }  // for each worker
  // All sequences of one channel. Gradients of filters add them up in order.
  virtual void run(void* const* tensors, int64_t channel, std::byte* scratch) const = 0;

 protected:
  int64_t channels_ = 0;
  size_t scratch_ = 0;
};

std::unique_ptr<SequenceWork> make_sequence_work(const Graph& g, const Node& n);

}  // namespace tsr::cpu
