// SPDX-License-Identifier: Apache-2.0
// From operation descriptors to the one graph. Operations come in any order; tensors are known by their unique id.
#pragma once

#include <unordered_map>

#include "capi/backend/descriptor.hpp"
#include "graph/ops/list.hpp"

namespace tsr::capi {

class OpGraph {
 public:
  // The graph's tensor for a tensor descriptor, made when it is first met. Refuses an id that stands for two tensors.
  TensorId tensor(const Descriptor& tensor);
  // The tensor of an attribute; kNone when it is not set.
  TensorId optional(const Descriptor& op, cudnnBackendAttributeName_t name);
  TensorId required(const Descriptor& op, cudnnBackendAttributeName_t name);
  // A number in the graph itself, and a virtual tensor between two nodes of one operation.
  TensorId constant(double value, DType type = DType::f32);
  TensorId between(DType type = DType::f32);
  void add(const OpSpec& op, std::vector<TensorId> in, std::vector<TensorId> out, std::any options, DType compute);
  // Orders, infers, checks.
  Graph finish();
  Graph& graph() { return graph_; }

 private:
  Graph graph_;
  std::unordered_map<int64_t, TensorId> by_uid_;
  std::unordered_map<int64_t, const Descriptor*> seen_;
};

// Adds the nodes of one operation descriptor; one function for each type, found by a table in translate.cpp.
void translate(const Descriptor& op, OpGraph& to);
bool is_operation(cudnnBackendDescriptorType_t type);

// The computation type of an attribute: FLOAT where it is absent, FAST_FLOAT_FOR_FP8 as FLOAT.
DType compute_type(const Descriptor& d, cudnnBackendAttributeName_t name);

}  // namespace tsr::capi
