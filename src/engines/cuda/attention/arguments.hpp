// SPDX-License-Identifier: Apache-2.0
// The arguments of attention kernels, filled from a Problem when a step is built; pointers and the values of scalars
// are set at each run.
#pragma once

#include "engines/attention/problem.hpp"
#include "engines/cuda/attention/args.cuh"
#include "planner/engine.hpp"

namespace tsr::cuda {

class Arguments {
 public:
  // Everything that forward and backward share.
  Arguments(const Graph& g, const attention::Problem& p);

  dev::attention::AttentionArgs& base() { return args_; }
  void set(dev::attention::Numbers& to, const attention::Numbers& from, double fallback);
  void set(dev::attention::Spread& to, const attention::Broadcast& from);
  void set(dev::attention::Sequences& to, const attention::Sequences& from);
  void set(dev::attention::Operand& to, const attention::Sequences& from);
  // Space of the workspace, or nothing for no bytes.
  void reserve(void*& to, int64_t bytes);

  size_t workspace_bytes() const { return workspace_bytes_; }
  dev::attention::AttentionArgs at(const StepArgs& a) const;

 private:
  template <class T>
  size_t position(const T& field) const {
    return static_cast<size_t>(reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&args_));
  }
  void bind(const void* const& pointer, TensorId t) { pointers_.emplace_back(position(pointer), t); }

  const Graph& g_;  // while it is filled
  dev::attention::AttentionArgs args_{};
  std::vector<std::pair<size_t, TensorId>> pointers_;  // where in the arguments
  struct Value {
    size_t position;  // of a dev::attention::Numbers or of a double
    TensorId tensor;
    DType type;
    bool numbers;
  };
  std::vector<Value> values_;
  std::vector<std::pair<size_t, size_t>> reserved_;  // where in the arguments and in the workspace
  size_t workspace_bytes_ = 0;

 public:
  // A number for score_mod that arrives with each run.
  void set(double& to, TensorId t) { values_.push_back({position(to), t, g_.tensor(t).dtype, false}); }
};

}  // namespace tsr::cuda
