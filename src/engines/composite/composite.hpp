// SPDX-License-Identifier: Apache-2.0
// Operations that are not one expression but a few, one after the other: each stage is a region of a small graph of its
// own, whose tensors are views of the operation's tensors or temporaries in the workspace.
#pragma once

#include <memory>
#include <optional>

#include "graph/op.hpp"
#include "planner/engine.hpp"

namespace tsr {

inline bool is(const Node& n, std::string_view op) { return n.op->name == op; }

class Composite {
 public:
  // --- building: tensors first, then the nodes of each stage
  // A tensor of the operation, or a view of it that starts `offset` elements further on, at a whole byte.
  TensorId view(const Graph& g, TensorId t, const Dims& dims, const Dims& strides, int64_t offset = 0);
  TensorId whole(const Graph& g, TensorId t) { return view(g, t, g.tensor(t).dims, g.tensor(t).strides); }
  TensorId temporary(DType type, const Dims& dims);
  // A value inside a stage.
  TensorId internal(DType type, const Dims& dims);
  // The memory of a tensor of this composite with other sizes, from element `offset` on.
  TensorId reshaped(TensorId t, const Dims& dims, const Dims& strides, int64_t offset = 0);
  const Tensor& tensor(TensorId t) const { return graph_.tensor(t); }
  TensorId constant(DType type, double value) { return graph_.add_tensor(make_scalar_constant(type, value)); }
  TensorId apply(tessera::PointwiseMode mode, DType compute, TensorId a, TensorId b = kNone, TensorId to = kNone);
  TensorId apply(const tessera::PointwiseOptions& o, DType compute, std::vector<TensorId> in, TensorId to = kNone);
  void add(Node n);
  // Stages run as one expression each, or by another engine.
  void end_stage(const Engine* other = nullptr);
  // Asks the engines about the stages, or says why one cannot be. `fused` is the engine for expressions.
  Reason finish(const Engine& fused, const Device& d);
  double seconds() const { return seconds_; }  // modelled

 private:
  friend class CompositeStep;
  struct Stage {
    std::vector<NodeId> nodes;
    const Engine* other = nullptr;
    Region region;
    std::unique_ptr<Match> match;
  };
  struct Bound {
    TensorId outer = kNone;  // kNone: a temporary, or nothing at all
    int64_t offset = 0;      // bytes from the start of the outer tensor, or of the temporaries
    bool used = false;
  };
  TensorId add_tensor(Tensor t, Bound b);
  bool is_view_of(TensorId t, TensorId outer) const;

  Graph graph_;
  std::vector<Bound> bound_;  // by tensor of graph_
  std::vector<Stage> stages_ = std::vector<Stage>(1);
  int64_t temporary_bytes_ = 0;
  double seconds_ = 0;
};

class CompositeStep : public Step {
 public:
  explicit CompositeStep(std::shared_ptr<const Composite> c);
  size_t workspace_bytes() const override;
  int kernels() const override;
  bool may_overwrite(TensorId input, TensorId output) const override;
  void run(const StepArgs& args) const override;

 private:
  std::shared_ptr<const Composite> composite_;
  std::vector<std::unique_ptr<Step>> steps_;  // by stage
};

// A region as a composite, or why it cannot be one.
struct MadeComposite {
  std::shared_ptr<const Composite> composite;
  Reason why;
};
Matched match_of(MadeComposite c, Config config);

// The composite of a region, where it is one of these operations: norm_bwd with gradients of scale or bias; what
// composites_generated.hpp, composites_reduce_by.hpp and composites_strided.hpp describe; and, on the CPU, rope and
// rope_bwd and causal_conv1d over channels side by side. Nothing where it is none.
std::optional<MadeComposite> make_composite(const Region& r, const Engine& fused, const Device& d);

}  // namespace tsr
