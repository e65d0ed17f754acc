// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph.hpp"

#include "api/state.hpp"
#include "graph/layouts.hpp"
#include "graph/text.hpp"

namespace tessera {

using tsr::kNone;
using tsr::require;
using tsr::TensorId;

namespace {

void set_name(tsr::Tensor& t, std::string_view name) {
  if (!name.empty()) tsr::require_name(name);
  t.name = name;
}

Subgraph build(size_t params, const std::function<Tensor(const std::vector<Tensor>&)>& body) {
  auto state = std::make_shared<GraphState>();
  std::vector<Tensor> values;
  for (size_t i = 0; i < params; ++i) {
    // Sizes of 1 stand in until the operation that takes the sub-graph tells the real ones.
    tsr::Tensor t;
    t.dims = t.strides = tsr::Dims{1, 1, 1, 1};
    t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
    values.push_back(state->handle(state->graph.add_tensor(t)));
  }
  state->inside = true;
  Tensor result = body(values);
  auto s = std::make_shared<tsr::Subgraph>();
  TensorId id = state->resolve(result);
  require(state->graph.producer(id) != kNone,
          "a sub-graph must compute its result; use identity() to pass a value through");
  for (size_t i = 0; i < params; ++i) s->params.push_back(GraphState::id(values[i]));
  state->graph.mark_output(id);
  state->graph.finalize();
  s->graph = state->graph;
  s->results = {id};
  s->captures = state->captures;
  s->captured = state->captured;
  return s;
}

}  // namespace

TensorId GraphState::resolve(const Tensor& t) {
  const auto& from = of(t);
  if (from.get() == this) return id(t);
  require(inside, "tensor '", t.name(), "' belongs to another graph");
  require(!outer || outer == from, "tensor '", t.name(),
          "' belongs to another graph than the sub-graph's other tensors");
  outer = from;
  for (size_t i = 0; i < captured.size(); ++i)
    if (captured[i] == id(t)) return captures[i];
  tsr::Tensor copy = from->graph.tensor(id(t));
  copy.uid = 0;
  copy.stored = true;
  copy.ragged = kNone;
  copy.by_value = copy.by_value || copy.is_constant();
  copy.constant.clear();
  copy.dtype_given = copy.dims_given = copy.strides_given = true;
  if (graph.find(copy.name) != kNone) copy.name.clear();
  captured.push_back(id(t));
  captures.push_back(graph.add_tensor(copy));
  return captures.back();
}

std::string Tensor::name() const { return GraphState::of(*this)->graph.tensor(id_).name; }
DType Tensor::dtype() const { return GraphState::of(*this)->graph.tensor(id_).dtype; }
Ints Tensor::dims() const { return GraphState::of(*this)->graph.tensor(id_).dims.to_vector(); }
Ints Tensor::strides() const { return GraphState::of(*this)->graph.tensor(id_).strides.to_vector(); }
int64_t Tensor::uid() const { return GraphState::of(*this)->graph.tensor(id_).uid; }

Tensor Tensor::as(DType type) const {
  tsr::Graph& g = GraphState::of(*this)->graph;
  require(g.producer(id_) != kNone, "'", name(), "' is an input; its type is fixed");
  tsr::Tensor& t = g.edit(id_);
  t.dtype = type;
  t.dtype_given = true;
  GraphState::of(*this)->types.forget(id_);
  return *this;
}

Tensor Tensor::layout(std::string_view layout) const {
  tsr::Tensor& t = GraphState::of(*this)->graph.edit(id_);
  auto strides = tsr::layout_strides(layout, t.dims);
  require(strides.has_value(), "'", layout, "' is no layout of ", tsr::describe(t));
  t.strides = *strides;
  t.strides_given = t.dims_given = true;
  return *this;
}

Tensor Tensor::ragged(Tensor offsets, int64_t multiplier) const {
  GraphState& s = *GraphState::of(*this);
  tsr::Tensor& t = s.graph.edit(id_);
  t.ragged = s.resolve(offsets);
  t.ragged_multiplier = multiplier;
  return *this;
}

Graph::Graph() : state_(std::make_shared<GraphState>()) {}

Graph::Graph(const Types& types) : Graph() { state_->types.types = types; }

Graph Graph::parse(std::string_view text) {
  Graph g;
  g.state_->graph = tsr::parse_graph(text);
  return g;
}

Graph Graph::load(std::string_view saved) {
  Graph g;
  g.state_->graph = tsr::load_graph(saved);
  return g;
}

std::string Graph::text() const { return tsr::print_graph(state_->graph); }

std::string Graph::save() const {
  state_->graph.finalize();
  return tsr::save_graph(state_->graph);
}

Tensor Graph::input(std::string_view name, DType type, const Ints& dims, const InputOptions& o) {
  tsr::Tensor t;
  set_name(t, name);
  t.dtype = type;
  t.dims = tsr::Dims(dims);
  t.strides = tsr::packed_strides(t.dims);
  if (!o.layout.empty()) {
    auto strides = tsr::layout_strides(o.layout, t.dims);
    require(strides.has_value(), "input '", name, "': '", o.layout, "' is no layout of ", dims.size(), " dimensions");
    t.strides = *strides;
  }
  if (!o.strides.empty()) t.strides = tsr::Dims(o.strides);
  t.alignment = o.alignment;
  t.frozen = o.frozen;
  t.uid = o.uid;
  t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
  return state_->handle(state_->graph.add_tensor(t));
}

Tensor Graph::input(std::string_view name, const Ints& dims, const InputOptions& o) {
  require(state_->types.types.io.has_value(), "input '", name, "' needs a type: give it one, or the graph Types::io");
  return input(name, *state_->types.types.io, dims, o);
}

Tensor Graph::scalar(std::string_view name, DType type) {
  tsr::Tensor t;
  set_name(t, name);
  t.dtype = type;
  t.dims = t.strides = tsr::Dims{1};
  t.stored = t.by_value = t.dtype_given = t.dims_given = t.strides_given = true;
  return state_->handle(state_->graph.add_tensor(t));
}

Tensor Graph::constant(double value, DType type) { return constant(std::vector<double>{value}, {1}, type); }

Tensor Graph::constant(const std::vector<double>& values, const Ints& dims, DType type) {
  tsr::Tensor t;
  t.dtype = type;
  t.dims = tsr::Dims(dims);
  t.strides = tsr::packed_strides(t.dims);
  t.dtype_given = t.dims_given = t.strides_given = true;
  require(!values.empty() && t.numel() == static_cast<int64_t>(values.size()), "a constant of sizes ", t.dims,
          " needs as many values, ", values.size(), " given");
  t.constant.resize(static_cast<size_t>(tsr::byte_size(type, t.numel())));
  for (int64_t i = 0; i < t.numel(); ++i) {
    double v = values[static_cast<size_t>(i)];
    tsr::store(type, t.constant.data(), i, v);
    require(tsr::is_real(type) || tsr::is_complex(type) || tsr::load<double>(type, t.constant.data(), i) == v,
            "a constant of ", type, " cannot be ", v);
  }
  return state_->handle(state_->graph.add_tensor(std::move(t)));
}

Tensor Graph::output(Tensor t, std::string_view name) {
  TensorId id = state_->resolve(t);
  state_->graph.mark_output(id);
  state_->types.set_output(state_->graph, id);
  if (name.empty()) return t;
  tsr::require_name(name);
  state_->graph.rename(id, name);
  return t;
}

Tensor Graph::output(Tensor t, std::string_view name, DType type) { return output(t.as(type), name); }

Tensor Graph::operator[](std::string_view name) const {
  TensorId id = state_->graph.find(name);
  if (id == kNone) {
    std::vector<std::string> names;
    for (int i = 0; i < state_->graph.tensor_count(); ++i)
      if (const std::string& n = state_->graph.tensor(i).name; !tsr::is_made_up(n)) names.push_back(n);
    std::string near = tsr::nearest(name, names);
    tsr::fail(Status::bad_parameter, "the graph has no tensor '", name, "'",
              near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  return state_->handle(id);
}

std::vector<Tensor> Graph::inputs() const {
  std::vector<Tensor> out;
  for (TensorId t : state_->graph.inputs()) out.push_back(state_->handle(t));
  return out;
}

std::vector<Tensor> Graph::outputs() const {
  std::vector<Tensor> out;
  for (TensorId t : state_->graph.outputs()) out.push_back(state_->handle(t));
  return out;
}

Subgraph subgraph(const std::function<Tensor(Tensor)>& body) {
  return build(1, [&](const std::vector<Tensor>& p) { return body(p[0]); });
}

Subgraph subgraph(const std::function<Tensor(Tensor, Tensor)>& body) {
  return build(2, [&](const std::vector<Tensor>& p) { return body(p[0], p[1]); });
}

}  // namespace tessera
