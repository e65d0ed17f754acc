// SPDX-License-Identifier: Apache-2.0
// The arguments of attention kernels, filled from a Problem when a step is built; pointers and the values of scalars
// are set at each run.
#pragma once

#include "engines/attention/problem.hpp"
#include "engines/cuda/attention/args.cuh"
#include "engines/cuda/toolkit/binder.hpp"

namespace tsr::cuda {

class Arguments {
 public:
  // Everything that forward and backward share.
  Arguments(const Graph& g, const attention::Problem& p);

  dev::attention::AttentionArgs& base() { return bound_.args; }
  void set(dev::attention::Numbers& to, const attention::Numbers& from, double fallback);
  void set(dev::attention::Spread& to, const attention::Broadcast& from);
  void set(dev::attention::Sequences& to, const attention::Sequences& from);
  void set(dev::attention::Operand& to, const attention::Sequences& from);
  // Space of the workspace, or nothing for no bytes.
  void reserve(void*& to, int64_t bytes);

  size_t workspace_bytes() const { return workspace_bytes_; }
  dev::attention::AttentionArgs at(const StepArgs& a) const { return bound_.filled(a); }
  // A number for score_mod that arrives with each run.
  void set(double& to, TensorId t) { bound_.real(to, g_.tensor(t).dtype, t); }

 private:
  const Graph& g_;  // while it is filled
  KernelArgs<dev::attention::AttentionArgs> bound_;
  size_t workspace_bytes_ = 0;
};

}  // namespace tsr::cuda
