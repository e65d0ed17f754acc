// SPDX-License-Identifier: Apache-2.0
// What all who write nodes have in common: front ends, gradients, decompositions. Where tensors and nodes are kept, in
// a graph or in a draft of one, is up to those who derive from it.
#pragma once

#include "graph/op.hpp"

namespace tsr {

class Builder {
 public:
  virtual ~Builder() = default;
  // A node, and its outputs by slot. Inputs and outputs by slot, too: kNone where one is left out, kNew for an output
  // that the node makes. Without options: the operation's own. Captures that sub-graphs know need not be given.
  std::vector<TensorId> add(const OpSpec& op, std::vector<TensorId> in, std::vector<TensorId> out, std::any options,
                            DType compute = DType::f32, const std::vector<TensorId>& captures = {});
  // The result of a pointwise operation, a new tensor or `to`.
  TensorId pointwise(const tessera::PointwiseOptions& o, std::vector<TensorId> in, DType compute = DType::f32,
                     TensorId to = kNew);
  TensorId constant(double value, DType type = DType::f32);  // one element
  // Tensors between nodes: of sizes that are inferred, or these.
  TensorId inferred(DType type);
  TensorId sized(DType type, const Dims& dims);

 protected:
  static Node make_node(const OpSpec& op, std::vector<TensorId> in, std::vector<TensorId> out, std::any options);
  virtual TensorId keep(Tensor t) = 0;
  virtual std::vector<TensorId> keep(Node n) = 0;  // gives the node's outputs
};

}  // namespace tsr
