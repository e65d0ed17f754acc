// SPDX-License-Identifier: Apache-2.0
// Graphs and their tensors. A Tensor is a light handle; it stays valid as long as any handle to its graph lives.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/options.hpp"
#include "tessera/types.hpp"

namespace tessera {

struct GraphState;
class Plan;
struct PlanOptions;

class Tensor {
 public:
  Tensor() = default;
  explicit operator bool() const { return state_ != nullptr; }
  std::string name() const;
  DType dtype() const;
  Ints dims() const;
  Ints strides() const;
  int64_t uid() const;
  // Gives a result its type, or its memory order as a layout name ("nhwc"); returns the same tensor.
  Tensor as(DType type) const;
  Tensor layout(std::string_view name) const;
  // Packed sequences: offsets of each batch's first element, in units of `multiplier` elements.
  Tensor ragged(Tensor offsets, int64_t multiplier = 1) const;

 private:
  friend struct GraphState;
  Tensor(std::shared_ptr<GraphState> s, int32_t id) : state_(std::move(s)), id_(id) {}
  std::shared_ptr<GraphState> state_;
  int32_t id_ = -1;
};

struct InputOptions {
  std::string layout;  // "nhwc", "bshd", ...; empty: row-major
  Ints strides;        // instead of a layout
  int64_t alignment = 16;
  int64_t uid = 0;  // 0: given by the graph
  // A promise that the contents stay the same for all executions of a plan, as weights do in inference: an engine may
  // prepare them once. Plans of such graphs are not shared through the plan cache.
  bool frozen = false;
};

class Graph {
 public:
  Graph();
  explicit Graph(const Types& types);
  static Graph parse(std::string_view text);  // the text form, docs/text-form.md
  static Graph load(std::string_view saved);  // what save() wrote
  std::string text() const;
  std::string save() const;

  Tensor input(std::string_view name, DType type, const Ints& dims, const InputOptions& options = {});
  Tensor input(std::string_view name, const Ints& dims, const InputOptions& options = {});  // of the type Types::io
  Tensor scalar(std::string_view name, DType type);  // one value, given in host memory at execution
  Tensor constant(double value, DType type = DType::f32);
  Tensor constant(const std::vector<double>& values, const Ints& dims, DType type = DType::f32);  // row-major
  // Marks a result as stored in the caller's memory, under this name if one is given.
  Tensor output(Tensor t, std::string_view name = {});
  Tensor output(Tensor t, std::string_view name, DType type);

  Tensor operator[](std::string_view name) const;  // raises when there is none
  std::vector<Tensor> inputs() const;
  std::vector<Tensor> outputs() const;

  Plan plan() const;
  Plan plan(const PlanOptions& options) const;

 private:
  friend struct GraphState;
  explicit Graph(std::shared_ptr<GraphState> s) : state_(std::move(s)) {}
  std::shared_ptr<GraphState> state_;
};

// A sub-graph for options such as SdpaOptions::score_mod: the function receives as many values as the operation passes,
// and may use tensors of the surrounding graph.
Subgraph subgraph(const std::function<Tensor(Tensor)>& body);
Subgraph subgraph(const std::function<Tensor(Tensor, Tensor)>& body);

}  // namespace tessera
