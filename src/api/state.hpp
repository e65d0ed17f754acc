// SPDX-License-Identifier: Apache-2.0
// What stands behind the public handles.
#pragma once

#include <any>
#include <mutex>

#include "graph/default_types.hpp"
#include "graph/op.hpp"
#include "planner/plan.hpp"
#include "tessera/ops.hpp"
#include "tessera/plan.hpp"

namespace tessera {

struct GraphState : std::enable_shared_from_this<GraphState> {
  tsr::Graph graph;
  tsr::DefaultTypes types;
  bool inside = false;  // a sub-graph under construction
  // While a sub-graph is being built: the surrounding graph, and which of its tensors stand for which here.
  std::shared_ptr<GraphState> outer;
  std::vector<tsr::TensorId> captures, captured;

  Tensor handle(tsr::TensorId id) { return {shared_from_this(), id}; }
  static tsr::TensorId id(const Tensor& t) { return t.id_; }
  static const std::shared_ptr<GraphState>& of(const Tensor& t) {
    if (!t.state_) throw Error(Status::bad_parameter, "an empty Tensor was used");
    return t.state_;
  }
  static GraphState& of(const Graph& g) { return *g.state_; }
  static const std::shared_ptr<GraphState>& shared(const Graph& g) { return g.state_; }
  static Graph wrap(std::shared_ptr<GraphState> s) { return Graph(std::move(s)); }

  // The id of `t` in this graph, captured from the surrounding one if need be.
  tsr::TensorId resolve(const Tensor& t);
};

struct PlanState {
  std::shared_ptr<const tsr::Plan> plan;
  std::string device;  // as the caller named it
  // The graph that was planned and the unique ids that its tensors had then; none and empty for a plan that was loaded.
  std::shared_ptr<const GraphState> graph = nullptr;
  std::vector<int64_t> uids = {};

  // The tensor of the plan's source that `t` stands for; raises when there is none.
  tsr::TensorId resolve(const Tensor& t) const;
};

// Memory of a device, or of the host when there is none, for `what`; raises when it cannot be had.
OwnedMemory allocate(size_t bytes, const tsr::DeviceMemory* device, const std::string& what);

// A number as a constant: of the type of its neighbour where that matters, f32 otherwise; as in the text form.
Tensor scalar_like(const Tensor& neighbour, double value);

}  // namespace tessera
