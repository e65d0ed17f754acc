// SPDX-License-Identifier: Apache-2.0
// The step of this engine: oneDNN primitives, and copies that the fused engine makes where oneDNN lacks a type, one
// after the other. All that does not depend on pointers is made when the step is built.
//
// oneDNN fixes how work is divided among threads when a primitive is created. Each primitive is therefore made twice,
// for all threads and for the caller alone; the second runs where the threads are busy with something else.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>

#include "base/thread_team.hpp"
#include "engines/cpu/onednn/compat.hpp"
#include "graph/pointwise_modes.hpp"
#include "planner/engine.hpp"

namespace tsr::onednn {

const dnnl::engine& device();

// Where memory lies at execution: a tensor's, a piece of the workspace, prepared once from a frozen tensor, or the
// scratch memory that all commands of a step share.
struct Place {
  enum Kind : uint8_t { tensor, workspace, prepared, scratch };
  Kind kind = tensor;
  int32_t index = 0;  // of the tensor or of the preparation
  size_t offset = 0;  // in bytes
};

struct Arg {
  int index;  // DNNL_ARG_...
  Desc desc;
  Place place;
};

// A primitive for all threads and one for the caller alone.
struct Primitives {
  dnnl::primitive team, alone;
  size_t scratch = 0;  // bytes
  std::string name;    // oneDNN's name of the implementation
};

// `describe(is_team)` gives a primitive description (an optional), first for the team; the second must have the same
// layouts.
template <class Describe>
Primitives make_primitives(int threads, const Describe& describe) {
  using Description = typename decltype(describe(true))::value_type;
  Primitives p;
  std::optional<Description> team, alone;
  {
    TeamSize size(threads);
    team = describe(true);
    if (!team) return p;
    p.team = dnnl::primitive(team->get());
  }
  p.name = team->impl_info_str();
  p.scratch = team->scratchpad_desc().get_size();
  if (threads > 1) {
    TeamSize size(1);
    alone = describe(false);
    if (!alone) return p;
    p.alone = dnnl::primitive(alone->get());
    p.scratch = std::max(p.scratch, alone->scratchpad_desc().get_size());
  }
  return p;
}

class Sequence : public Step {
 public:
  explicit Sequence(const Region& r);

  int threads() const { return threads_; }  // that primitives are made for; 1 where the work is not worth waking others
  static Place at(TensorId t) { return {Place::tensor, t, 0}; }
  Place reserve(size_t bytes);  // workspace of this step
  // Converts element by element; both tensors have the same sizes.
  void copy(const Tensor& from, Place source, const Tensor& to, Place target);
  // The same for the sum of two tensors of one description.
  void add(const Tensor& from, Place a, Place b, const Tensor& to, Place target);
  void reorder(const Desc& from, Place source, const Desc& to, Place target);
  void call(const Primitives& p, std::vector<Arg> args);
  // `bytes` that `fill` computes from tensor `source` alone, given their place. Where the tensor is frozen that happens
  // once in the life of the step, otherwise each time.
  Place prepare(const Graph& g, TensorId source, size_t bytes, const std::function<void(Place)>& fill);

  size_t workspace_bytes() const override { return workspace_ + scratch_; }
  int kernels() const override { return static_cast<int>(commands_.size()); }
  void run(const StepArgs& a) const override;

 private:
  static constexpr int kMaxPrepared = 4;
  static constexpr size_t kMaxArgs = 24;

  struct Copy {
    Graph graph;
    std::unique_ptr<Step> step;
    std::vector<Place> places;  // of the graph's tensors: inputs, then the output
  };
  struct Command {  // a copy or a call
    std::unique_ptr<Copy> copy;
    Primitives primitives;
    std::vector<Arg> args;
  };
  struct FreeBytes {
    void operator()(std::byte* p) const;
  };
  // Filled for the first pointer that is seen; executions with another pointer use the workspace.
  struct Prepared {
    TensorId source = kNone;
    size_t offset = 0;  // of the place in the workspace
    std::vector<Command> commands;
    std::unique_ptr<std::byte, FreeBytes> memory;
    enum State : int { empty, filling, ready };
    std::atomic<int> state{empty};
    const void* seen = nullptr;
  };
  struct Frame {
    const StepArgs& args;
    std::array<std::byte*, kMaxPrepared> prepared;
  };

  void pointwise(PointwiseMode mode, const Tensor& from, std::vector<Place> sources, const Tensor& to, Place target);
  std::byte* resolve(const Frame& f, Place p) const;
  void run_all(const std::vector<Command>& commands, const Frame& f) const;
  void run_call(const Command& c, const Frame& f) const;
  void run_prepared(Prepared& p, size_t index, Frame& f) const;

  int threads_;
  size_t workspace_ = 0, scratch_ = 0;  // scratch is shared by all commands and lies behind the rest
  std::vector<Command> commands_;
  std::vector<Command>* adding_to_ = &commands_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace tsr::onednn
