// SPDX-License-Identifier: Apache-2.0
#include "cudnn/graph.hpp"

#include <algorithm>

namespace cudnn {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

Descriptor make_tensor(const Library& library, const Tensor& t, const void* ragged_offset) {
  Descriptor d(library, Kind::tensor);
  d.set(Attr::tensor_data_type, t.type);
  Ints dims = t.dims;
  if (t.lanes > 1) {  // sizes are told in vectors
    dims[static_cast<size_t>(t.vectorized)] /= t.lanes;
    d.set(Attr::tensor_vector_count, t.lanes);
    d.set(Attr::tensor_vectorized_dimension, t.vectorized);
  }
  d.set(Attr::tensor_dimensions, dims);
  d.set(Attr::tensor_strides, t.strides);
  d.set(Attr::tensor_unique_id, t.uid);
  d.set(Attr::tensor_byte_alignment, t.alignment);
  if (t.is_virtual) d.set(Attr::tensor_is_virtual, true);
  if (t.by_value) d.set(Attr::tensor_is_by_value, true);
  if (ragged_offset) d.set(Attr::tensor_ragged_offset_desc, AttrType::backend_descriptor, &ragged_offset, 1);
  if (t.ragged_multiplier != 1) d.set(Attr::tensor_ragged_offset_multiplier, t.ragged_multiplier);
  if (t.reordering != Reordering::none) d.set(Attr::tensor_reordering_mode, t.reordering);
  d.finalize();
  return d;
}

}  // namespace

const Value* Node::find(Attr name) const {
  auto f = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
  return f == fields.end() ? nullptr : &f->value;
}

const Tensor* Graph::find(int64_t uid) const {
  auto t = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.uid == uid; });
  return t == tensors.end() ? nullptr : &*t;
}

OperationGraph::OperationGraph(const Library& library, const Graph& graph, const Handle* handle) : library_(library) {
  Node whole{Kind::operationgraph, {{Attr::operationgraph_ops, graph.operations}}};
  make(graph, whole, handle);
}

void* OperationGraph::tensor(const Graph& g, int64_t uid) {
  if (auto made = tensors_.find(uid); made != tensors_.end()) return made->second.raw();
  const Tensor* t = g.find(uid);
  if (!t) throw Error(0, "an operation uses tensor " + std::to_string(uid) + ", which the graph does not have");
  void* offset = t->ragged_offset ? tensor(g, *t->ragged_offset) : nullptr;
  if (!t->is_virtual) arguments_.push_back(*t);
  try {
    return tensors_.emplace(uid, make_tensor(library_, *t, offset)).first->second.raw();
  } catch (const Error& e) {
    throw Error(e.status(), "tensor '" + t->name + "': " + e.what());
  }
}

// Descriptors that a node refers to come before it.
void* OperationGraph::make(const Graph& g, const Node& n, const Handle* handle) {
  Descriptor d(library_, n.kind);
  for (const Field& field : n.fields) {
    std::vector<void*> raw;
    std::visit(Overloaded{[&](const Uids& v) {
                            for (int64_t uid : v.uids) raw.push_back(tensor(g, uid));
                            d.set_descriptors(field.name, raw);
                          },
                          [&](const std::vector<Node>& v) {
                            for (const Node& node : v) raw.push_back(make(g, node));
                            d.set_descriptors(field.name, raw);
                          },
                          [&](const Choice& v) { d.set(field.name, v.type, &v.value, 1); },
                          [&](const auto& v) { d.set(field.name, v); }},
               field.value);
  }
  if (handle) {
    void* raw = handle->raw();
    d.set(Attr::operationgraph_handle, AttrType::handle, &raw, 1);
  }
  d.finalize();
  parts_.push_back(std::move(d));
  return parts_.back().raw();
}

}  // namespace cudnn
