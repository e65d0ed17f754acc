// SPDX-License-Identifier: Apache-2.0
// Operations that are not one expression but a few, one after the other: each stage is a region of a small graph of its
// own, whose tensors are views of the operation's tensors or temporaries in the workspace.
#pragma once

#include "engines/cpu/fused/program.hpp"

namespace tsr::cpu {

class Composite {
 public:
  // --- building: tensors first, then the nodes of each stage
  // A tensor of the operation, or a view of it that starts `offset` elements further on.
  TensorId view(const Graph& g, TensorId t, const Dims& dims, const Dims& strides, int64_t offset = 0);
  TensorId whole(const Graph& g, TensorId t) { return view(g, t, g.tensor(t).dims, g.tensor(t).strides); }
  TensorId temporary(DType type, const Dims& dims);
  TensorId constant(DType type, double value) { return graph_.add_tensor(make_scalar_constant(type, value)); }
  TensorId apply(tessera::PointwiseMode mode, DType compute, TensorId a, TensorId b = kNone, TensorId to = kNone);
  void add(Node n);
  void end_stage();
  // Compiles the stages (for no threads only checks them), or says why one cannot be.
  Reason finish(int threads);

  // --- running
  size_t workspace_bytes() const;
  void run(void* const* tensors, std::byte* workspace) const;

 private:
  struct Bound {
    TensorId outer = kNone;  // kNone: a temporary, or nothing at all
    int64_t offset = 0;      // bytes from the start of the outer tensor, or of the temporaries
    bool used = false;
  };
  TensorId add_tensor(Tensor t, Bound b);

  Graph graph_;
  std::vector<Bound> bound_;  // by tensor of graph_
  std::vector<std::vector<NodeId>> stages_{1};
  std::vector<Program> programs_;
  int64_t temporary_bytes_ = 0;
};

// The composite of a region, where it is one of these operations: rope and rope_bwd; norm_bwd with gradients of scale
// or bias; causal_conv1d over channels side by side. Nullptr where it is none; `why` says if it cannot be built. With
// no threads it can be asked, not run.
std::unique_ptr<Composite> make_composite(const Region& r, int threads, Reason& why);

}  // namespace tsr::cpu
